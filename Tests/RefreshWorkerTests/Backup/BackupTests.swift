import SQLiteStore
import Secrets
import Store
import Testing

@testable import WorkerCommands
@testable import WorkerConfiguration
@testable import WorkerLifecycle

@Suite("Backup", .timeLimit(.minutes(10)))
struct BackupTests {
    @Test("a copy of a database in use holds its grants, still sealed, and only its owner may read it")
    func live() async throws {
        try await OperatorBench.with { bench in
            _ = try KeyRingFile.generate(path: bench.keyFile)
            let store = try bench.openStore()
            let vault = try bench.openVault()
            try await bench.insert(1...50, sealedBy: vault, into: store)
            let file = bench.path("copy.sqlite")
            #expect(try await bench.context().backUp(to: file) == .success)
            // The original is still in use.
            try await bench.insert(51...51, sealedBy: vault, into: store)
            await store.close()
            #expect(try FileStatus.of(file)?.mode == "0600")

            let copy = try SQLiteStore(path: file, timeSource: bench.time)
            let grants = try await copy.grants(after: nil, in: nil, atMost: 100)
            await copy.close()
            #expect(grants.count == 50)
            let first = try #require(grants.first)
            #expect(try vault.openRefreshToken(of: first)?.reveal() == "refresh 1")
            #expect(try bench.names.filter { $0.contains("partial") } == [])
        }
    }

    @Test(
        "existing files are not overwritten, and folders are not created",
        arguments: ["there", "no/copy", "file/copy"]
    )
    func refused(name: String) async throws {
        try await OperatorBench.with { bench in
            let store = try bench.openStore()
            await store.close()
            try bench.write("kept", to: "there")
            try bench.write("", to: "file")
            let context = try bench.context()
            let refusal = await failure { try await context.backUp(to: bench.path(name)) }
            #expect(refusal?.exitCode == .cannotCreate)
            #expect(try FileStatus.of(bench.path("there"))?.size == 4)
            #expect(!bench.exists("no"))
        }
    }

    @Test("a damaged database fails")
    func damaged() async throws {
        try await OperatorBench.with { bench in
            try bench.write(String(repeating: "no database ", count: 500), to: "grants.sqlite")
            let context = try bench.context()
            let refusal = await failure { try await context.backUp(to: bench.path("copy")) }
            #expect(refusal?.exitCode == .configuration)
            #expect(!bench.exists("copy"))
        }
    }
}
