import Base
import Foundation
import Testing

@testable import RefreshWorker

@Suite("Without a database, a command that needs an existing one", .timeLimit(.minutes(10)))
struct MissingDatabaseTests {
    @Test(
        "reports that, and does not create one",
        arguments: [
            ["grants", "list", "--json"], ["users", "list", "--json"],
            ["grants", "history", "alice", "--json"], ["users", "show", "alice", "--json"],
            ["users", "delete", "alice", "--json"], ["grants", "retry", "--state", "retrying"],
            ["grants", "show", "alice", "--json"],
            ["grants", "export", "--plaintext"], ["grants", "disconnect", "alice"],
            ["token", "alice", "--min-ttl", "0"],
        ] as [[String]]
    )
    func refused(command: [String]) async throws {
        try await refused(command, with: .configuration)
    }

    @Test("status says by its exit code that it cannot tell")
    func status() async throws {
        try await refused(["status", "--json"], with: .cannotTell)
        try await refused(["status", "--watch", "--json"], with: .cannotTell)
    }

    @Test(
        "and with files of one beside it, every command and the worker refuse to create one",
        arguments: [
            "grants.sqlite-wal", "grants.sqlite.reserve", "grants.sqlite-leases-1", "grants.sqlite.unsaved-1-a",
        ]
    )
    func leftovers(name: String) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            _ = try await context.run(["keys", "generate"])
            try fixture.write("", to: name)
            let commands: [([String], ExitCode)] = [
                ([], .configuration), (["grants", "list"], .configuration),
                (["keys", "list"], .configuration), (["status"], .cannotTell),
            ]
            for (command, code) in commands {
                let failure = await #expect(throws: CommandError.self) { _ = try await context.run(command) }
                #expect(failure?.exitCode == code)
                #expect(failure?.message.contains("(\(name)): mount its disk") == true, "\(failure?.message ?? "")")
            }
            #expect(try fixture.names == [name, "keys"])
        }
    }

    @Test("without a key ring either, this is a first start, unless files of a database are left")
    func firstStart() async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            for command in [[], ["--run-once"], ["keys", "list"]] {
                let failure = await #expect(throws: CommandError.self) { _ = try await context.run(command) }
                let message = failure?.message ?? ""
                #expect(message.hasPrefix("this is a first start: ") && message.contains("keys generate"), "\(message)")
            }
            try fixture.write("", to: "grants.sqlite-wal")
            let failure = await #expect(throws: FileError.self) { _ = try await context.run([]) }
            #expect(failure?.description.contains("restore it from its copy") == true)
        }
    }

    @Test("files beside the file that a link names count, and those beside a database that exists do not")
    func linked() async throws {
        try await OperatorFixture.with { fixture in
            let folder = fixture.path("disk")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let link = fixture.path("linked.sqlite")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "disk/grants.sqlite")
            #expect(try LeftoverFiles.besideMissing(link) == [])
            try fixture.write("", to: "disk/grants.sqlite-wal")
            #expect(try LeftoverFiles.besideMissing(link) == ["grants.sqlite-wal"])
            try fixture.write("", to: "disk/grants.sqlite")
            #expect(try LeftoverFiles.besideMissing(link) == [])
        }
    }

    @Test("files of another database beside it do not count")
    func otherDatabase() {
        let names = ["grants.sqlite-walrus", "grants.sqlite.old", "grants.sqlite2-wal", "my-grants.sqlite-wal", "keys"]
        #expect(LeftoverFiles.names(ofDatabase: "grants.sqlite", among: names) == [])
    }

    private func refused(_ command: [String], with code: ExitCode) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            _ = try await context.run(["keys", "generate"])
            let failure = await #expect(throws: CommandError.self) { _ = try await context.run(command) }
            #expect(failure?.exitCode == code)
            #expect(failure?.message.contains(fixture.database) == true)
            #expect(try fixture.names == ["keys"])
        }
    }
}
