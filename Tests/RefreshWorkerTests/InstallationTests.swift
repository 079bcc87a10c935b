import Foundation
import Glibc
import Testing

@testable import RefreshWorker

@Suite("The configuration of the installation")
struct InstallationTests {
    private static let own = "/home/jane/.config/refresh-worker/refresh-worker.conf"

    /// A machine on which each file that could be read sets a client id that is its name.
    private static func machine(_ files: String..., home: String? = "/home/jane") -> TestMachine {
        var machine = TestMachine(environment: home.map { ["HOME": $0] } ?? [:])
        for file in files { machine.files[file] = "GOOGLE_CLIENT_ID=\(file)" }
        return machine
    }

    @Test(
        "is read without a name, after the file of the user's own",
        arguments: [
            ([], nil),
            ([Installation.file], Installation.file),
            ([own], own),
            ([own, Installation.file], own),
        ] as [([String], String?)]
    )
    func found(files: [String], expected: String?) throws {
        var machine = Self.machine()
        for file in files { machine.files[file] = "GOOGLE_CLIENT_ID=\(file)" }
        let configuration = try machine.resolve()
        #expect(configuration.configurationFile == expected)
        #expect(configuration.clientIDs == [expected].compactMap(\.self))
    }

    @Test("gives way to a file that the environment names, and that to the flag")
    func named() throws {
        var machine = Self.machine(Self.own, Installation.file, "/a", "/b")
        machine.environment["REFRESH_WORKER_CONFIG"] = "/b"
        #expect(try machine.resolve().clientIDs == ["/b"])
        machine.flags = [(.config, "/a")]
        #expect(try machine.resolve().clientIDs == ["/a"])
    }

    @Test("is root's only file, because HOME might be another user's folder")
    func root() throws {
        var machine = Self.machine(Self.own, Installation.file)
        machine.isRoot = true
        #expect(try machine.resolve().configurationFile == Installation.file)
        machine.files[Installation.file] = nil
        #expect(try machine.resolve().configurationFile == nil)
    }

    @Test("is not passed over by a user who cannot read it, unless the user names a database")
    func unreadable() throws {
        var machine = Self.machine()
        machine.unreadableFiles = [Installation.file]
        let complaint = try #require(machine.complaints.first)
        #expect(complaint.contains(Installation.file) && complaint.contains("run this as root"))
        machine.environment["REFRESH_WORKER_DATABASE"] = "/tmp/grants.sqlite"
        #expect(try machine.resolve().database == .file("/tmp/grants.sqlite"))
    }

    @Test("counts for a user whose HOME is the folder of another user")
    func foreignHome() throws {
        var machine = Self.machine(Installation.file)
        machine.unreadableFiles = [Self.own]
        #expect(try machine.resolve().configurationFile == Installation.file)
    }

    @Test("takes the address that systemd passes to the running service, unless the file has a database")
    func serviceCredential() throws {
        let credential = "/run/credentials/refresh-worker.service/database-url"
        var machine = Self.machine(Installation.file)
        machine.files[credential] = "postgres://worker@db/grants"
        #expect(try "\(machine.resolve().database)" == "postgres://worker@db/grants")
        machine.files[Installation.file] = "REFRESH_WORKER_DATABASE=/srv/grants.sqlite"
        #expect(try machine.resolve().database == .file("/srv/grants.sqlite"))
        machine.files[Installation.file] = nil
        #expect(try machine.resolve().database == .file("/var/lib/refresh-worker/grants.sqlite"))
    }

    @Test("finds the key ring that systemd passes to the running service, unless the file has one")
    func serviceKeyRing() throws {
        let credential = "/run/credentials/refresh-worker.service/key-ring"
        var machine = Self.machine(Installation.file)
        machine.files[credential] = "key"
        #expect(try machine.resolve().serviceKeyRing == credential)
        machine.environment["CREDENTIALS_DIRECTORY"] = "/run/credentials/mine"
        #expect(try machine.resolve().serviceKeyRing == nil)
        machine.environment["CREDENTIALS_DIRECTORY"] = nil
        machine.files[Installation.file] = "REFRESH_WORKER_KEY_FILE=/srv/keys"
        #expect(try machine.resolve().serviceKeyRing == nil)
        machine.files[Installation.file] = nil
        #expect(try machine.resolve().serviceKeyRing == nil)
    }

    @Test("does not take the default database for one whose address only the running service has")
    func hiddenDatabase() throws {
        var machine = TestMachine()
        for folder in ["/etc/credstore", "/etc/credstore.encrypted"] {
            machine = Self.machine(Installation.file)
            machine.files[folder + "/refresh-worker.database-url"] = "postgres://worker@db/grants"
            let complaint = try #require(machine.complaints.first)
            #expect(complaint.contains("/run/credentials/refresh-worker.service/database-url"), "\(complaint)")
            #expect(complaint.contains("only while the service runs. Start the service, or run as root"))
        }
        // They use no database, or only look for one.
        for command in [Command.generateKeys, .makeHandle] {
            machine.command = command
            #expect(machine.complaints.isEmpty)
        }
        machine.command = .program
        machine.environment["CREDENTIALS_DIRECTORY"] = "/run/credentials/mine"
        #expect(try machine.resolve().database == .file("/var/lib/refresh-worker/grants.sqlite"))
    }

    /// Command lines, the variable that names the file, and the file that root must not use.
    @Test(
        "makes root the service's user wherever a file is not root's alone, unless root stays root or is a unit",
        arguments: [
            ("status", nil, Installation.file),
            ("status --config /etc/refresh-worker/refresh-worker.conf", nil, Installation.file),
            ("status", Installation.file, Installation.file),
            ("status", "", Installation.file),
            ("--config /etc/refresh-worker/refresh-worker.conf", nil, Installation.file),
            ("--run-once", nil, Installation.file),
            ("google-events status --service-account-file -", nil, Installation.file),
            // Root's own file names no others, so these are the service's.
            ("status --config /root/mine.conf", nil, "/var/lib/refresh-worker/grants.sqlite"),
            ("status", "/root/mine.conf", "/var/lib/refresh-worker/grants.sqlite"),
            ("keys generate --config /root/mine.conf --database /root/g", nil, "/etc/refresh-worker/keys"),
            ("--config /root/mine.conf --database /root/g --key-file /root/k", nil, nil),
            (
                "--config /root/mine.conf --database /root/g --key-file /root/k --metrics-log /home/jane/m", nil,
                "/home/jane/m"
            ),
            (
                "--config /root/mine.conf --database /root/g --key-file /root/k --app-keys /home/jane/keys", nil,
                "/home/jane/keys"
            ),
            ("status --config /dev/null --database /root/g --key-file /root/k", nil, nil),
            ("store copy --config /dev/null --from /root/a --to /home/jane/b --key-file /root/k", nil, "/home/jane/b"),
            ("status --no-switch", nil, nil),
            ("services credential mailer", nil, nil),
            ("version", nil, nil),
            ("status --help", nil, nil),
        ] as [(String, String?, String?)]
    )
    func foreignFile(line: String, variable: String?, expected: String?) throws {
        var machine = Self.machine("/root/mine.conf", "/dev/null", home: nil)
        machine.files = ["/root/mine.conf": "", "/dev/null": ""]
        machine.environment["REFRESH_WORKER_CONFIG"] = variable
        let parsed = try Command.program.parse(line.split(separator: " ").map(String.init))
        machine.flags = parsed.flags.map { ($0.name, $0.value) }
        // The configuration file of the service does not exist at this moment.
        func file() -> String? {
            Installation.foreignFile(for: parsed, with: machine.inputs) { path in
                ["/root/", "/dev/"].contains { path.hasPrefix($0) }
            }
        }
        #expect(file() == expected)
        machine.environment["CREDENTIALS_DIRECTORY"] = "/run/credentials/mine"
        #expect(file() == nil)
    }

    @Test("a way is root's alone if nobody else can change a folder, a link or the file", .enabled(if: geteuid() == 0))
    func way() throws {
        let folder = "\(NSTemporaryDirectory())/way-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func made(_ name: String, owner: UInt32 = 0, mode: UInt32 = 0o700) throws -> String {
            let path = "\(folder)/\(name)"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            try #require(chmod(path, mode) == 0 && chown(path, owner, owner) == 0)
            return path
        }
        let own = try made("own")
        let foreign = try made("foreign", owner: 4321)
        _ = try made("foreign/own")
        for (name, target) in [("in", "foreign/file"), ("out", foreign), ("back", "../own/file"), ("loop", "loop")] {
            try FileManager.default.createSymbolicLink(atPath: "\(own)/\(name)", withDestinationPath: target)
        }
        try FileManager.default.createSymbolicLink(atPath: "\(foreign)/to-own", withDestinationPath: own)
        let cases: [(String, Bool)] = [
            ("\(own)/missing/file", true), ("\(own)/../own/file", true), ("\(own)/back", true), ("/dev/null", true),
            ("\(foreign)/missing", false), ("\(foreign)/own/file", false), ("\(own)/out/missing", false),
            ("\(own)/loop", false), ("\(foreign)/to-own/file", false),
            ("\(try made("open", mode: 0o777))/file", false), ("\(try made("sticky", mode: 0o1777))/file", true),
        ]
        for (path, expected) in cases { #expect(PathResolver.onlyRootCanChange(path) == expected, "\(path)") }
    }

    @Test("root that continues as another user learns how that user can read a file")
    func unreadableAfterSwitch() throws {
        var machine = Self.machine()
        machine.unreadableFiles = ["/root/mine.conf"]
        machine.flags = [(.config, "/root/mine.conf")]
        machine.continuesAs = "refresh-worker"
        let complaint = try #require(machine.complaints.first)
        #expect(complaint.contains("root continues as user refresh-worker"))
        #expect(complaint.hasSuffix("stay root with --no-switch"))
    }

    @Test("every command that reads the configuration shows --no-switch")
    func flag() throws {
        for command in Command.program.tree where !command.isGroup {
            let help = try #require(try Command.program.parse(command.words + ["--help"]).text)
            #expect(help.contains("--no-switch") == command.readsConfiguration, "\(command.invocation)")
        }
    }
}
