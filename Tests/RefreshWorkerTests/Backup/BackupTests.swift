import Crypto
import Storage
import Testing

@testable import RefreshWorker

@Suite("Backup", .timeLimit(.minutes(10)))
struct BackupTests {
    @Test("a copy of a database in use holds its grants, still sealed, and only its owner may read it")
    func live() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try fixture.openStore()
            let vault = try fixture.openVault()
            try await fixture.insert(1...50, sealedBy: vault, into: store)
            let file = fixture.path("copy.sqlite")
            #expect(try await fixture.context().run(["backup", file]) == .success)
            // The original is still in use.
            try await fixture.insert(51...51, sealedBy: vault, into: store)
            await store.close()
            #expect(try FileStatus.of(file)?.mode == "0600")

            let copy = try SQLiteStore(path: file, timeSource: fixture.time)
            let grants = try await copy.grants(after: nil, in: nil, atMost: 100)
            await copy.close()
            #expect(grants.count == 50)
            let first = try #require(grants.first)
            #expect(try vault.openRefreshToken(of: first)?.reveal() == "refresh 1")
            #expect(try fixture.names.filter { $0.contains("partial") } == [])
        }
    }

    @Test(
        "existing files are not overwritten, and folders are not created",
        arguments: ["there", "no/copy", "file/copy"]
    )
    func refused(name: String) async throws {
        try await OperatorFixture.with { fixture in
            let store = try fixture.openStore()
            await store.close()
            try fixture.write("kept", to: "there")
            try fixture.write("", to: "file")
            let context = try fixture.context()
            let refusal = await failure { try await context.run(["backup", fixture.path(name)]) }
            #expect(refusal?.exitCode == .cannotCreate)
            #expect(try FileStatus.of(fixture.path("there"))?.size == 4)
            #expect(!fixture.exists("no"))
        }
    }

    @Test("a damaged database fails")
    func damaged() async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write(String(repeating: "no database ", count: 500), to: "grants.sqlite")
            let context = try fixture.context()
            let refusal = await failure { try await context.run(["backup", fixture.path("copy")]) }
            #expect(refusal?.exitCode == .configuration)
            #expect(!fixture.exists("copy"))
        }
    }
}
