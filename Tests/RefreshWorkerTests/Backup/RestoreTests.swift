import Crypto
import Foundation
import Storage
import Testing

@testable import Base
@testable import RefreshWorker

@Suite("Restoring a backup", .timeLimit(.minutes(10)))
struct RestoreTests {
    /// Makes a database with three grants, and a backup of it.
    private static func backUp(_ fixture: OperatorFixture, _ words: [String] = []) async throws -> String {
        _ = try KeyRingFile.generate(path: fixture.keyFile)
        let store = try fixture.openStore()
        try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store)
        await store.close()
        try fixture.write("", to: "worker.conf", mode: 0o640)
        let file = fixture.path("copy.tar")
        let context = try fixture.context([(.config, fixture.path("worker.conf"))])
        #expect(try await context.run(["backup"] + words + [file]) == .success)
        return file
    }

    private static func grants(_ fixture: OperatorFixture) async throws -> Int {
        let store = try fixture.openStore()
        defer { Task { await store.close() } }
        return try await store.grants(after: nil, in: nil, atMost: 100).count
    }

    @Test("brings the files back, keeps the former ones, and leaves a key ring that differs", arguments: [true, false])
    func archive(isArchive: Bool) async throws {
        try await OperatorFixture.with { fixture in
            let file = try await Self.backUp(fixture, isArchive ? ["--archive", "--with-secrets"] : [])
            let store = try fixture.openStore()
            try await fixture.insert(4...5, sealedBy: try fixture.openVault(), into: store)
            await store.close()
            try fixture.write("# later\n", to: "worker.conf")
            let ring = try FileReader.system.read(fixture.keyFile) + Array("# a comment\n".utf8)
            try fixture.write(String(decoding: ring, as: UTF8.self), to: "keys")
            let context = try fixture.context([(.config, fixture.path("worker.conf"))])
            // The doctor at the end finds no endpoint.
            #expect(try await context.run(["restore", file]) == .peerUnreachable)
            #expect(try await Self.grants(fixture) == 3)
            let former = try #require(try fixture.names.first { $0.hasPrefix("former-") })
            #expect(try FileStatus.of(fixture.path("\(former)/grants.sqlite"))?.mode == "0600")
            #expect(try FileReader.system.read(fixture.keyFile) == ring)
            #expect(try fixture.names.contains { $0.hasPrefix("worker.conf.former-") } == isArchive)
            #expect(try FileStatus.of(fixture.path("worker.conf"))?.mode == (isArchive ? "0640" : "0600"))
            #expect(try fixture.names.filter { $0.contains("restoring") } == [])
        }
    }

    @Test("is refused while a process has the database open, and changes nothing")
    func inUse() async throws {
        try await OperatorFixture.with { fixture in
            let file = try await Self.backUp(fixture, ["--archive"])
            let gate = try LockedDatabase(fixture.database)
            let context = try fixture.context()
            let before = try fixture.names
            let refusal = await failure { try await context.run(["restore", file]) }
            #expect(refusal?.exitCode == .leftForLater)
            #expect(refusal?.message.contains("systemctl stop") == true)
            #expect(try fixture.names == before)
            withExtendedLifetime(gate) {}
        }
    }

    /// Changes to an archive, and what is said about each.
    @Test(
        "of an archive that is damaged, cut off or made by another program is refused, and changes nothing",
        arguments: [
            ("cut", "ends before the end"), ("checksum", "is damaged at byte 0"), ("link", "has a link"),
            ("climbing", "a path that refresh-worker backup does not write"), ("content", "is damaged"),
            ("text", "is no archive"), ("no database", "does not begin with a database"),
        ]
    )
    func refused(change: String, complaint: String) async throws {
        try await OperatorFixture.with { fixture in
            let file = try await Self.backUp(fixture, ["--archive"])
            var bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
            func reseal() {
                bytes.replaceSubrange(148..<156, with: "        ".utf8)
                let digits = String(bytes[..<512].reduce(0) { $0 + Int($1) }, radix: 8)
                bytes.replaceSubrange(
                    148..<155,
                    with: (String(repeating: "0", count: 6 - digits.count) + digits).utf8 + [0]
                )
            }
            switch change {
            case "cut": bytes.removeLast(20_000)
            case "checksum": bytes[5] ^= 1
            case "link":
                bytes[156] = UInt8(ascii: "2")
                reseal()
            case "climbing":
                bytes.replaceSubrange(0..<3, with: "../".utf8)
                reseal()
            case "content": bytes.replaceSubrange(512 + 4096..<512 + 12_288, with: repeatElement(7, count: 8192))
            case "text": bytes = Array(String(repeating: "no archive ", count: 200).utf8)
            default: bytes[512] ^= 1
            }
            try Data(bytes).write(to: URL(filePath: file))
            let context = try fixture.context()
            let before = try fixture.names
            let refusal = await failure { try await context.run(["restore", file]) }
            #expect(refusal?.exitCode == .badData)
            #expect(refusal?.message.contains(complaint) == true, "\(refusal?.message ?? "")")
            #expect(try fixture.names == before)
        }
    }

    @Test("gives no rights of an owner back, and root restores only what the configuration names")
    func strangers() async throws {
        try await OperatorFixture.with { fixture in
            let file = try await Self.backUp(fixture, ["--archive"])
            let folder = fixture.path("elsewhere")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            var bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
            let user = (id: UInt32(0), name: "root")
            let header = BackupArchive.header(
                path: "\(folder)/set-user-id",
                mode: 0o4755,
                user: user,
                group: user,
                size: 0,
                modifiedAt: 0
            )
            bytes.insert(contentsOf: try #require(header), at: bytes.count - 1024)
            try Data(bytes).write(to: URL(filePath: file))
            _ = try await fixture.context().run(["restore", file])
            let mode = try FileStatus.of("\(folder)/set-user-id")?.mode
            #expect(mode == (geteuid() == 0 ? nil : "0755"))
        }
    }
}

/// A lock as another process's worker has on its database.
private struct LockedDatabase: ~Copyable {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = open(path, O_RDWR | O_CLOEXEC)
        var lock = Glibc.flock()
        lock.l_type = Int16(F_RDLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_len = 1
        // F_OFD_SETLK: it conflicts with locks of this process too.
        try #require(fcntl(descriptor, 37, &lock) == 0)
    }

    deinit { close(descriptor) }
}
