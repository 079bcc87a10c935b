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

    /// Command lines, the variable that names the file, the folder of credentials, and if root becomes the service's user.
    @Test(
        "makes root the service's user, unless root names another file, stays root, or is a unit of its own",
        arguments: [
            ("status", nil, nil, true),
            ("status --config /etc/refresh-worker/refresh-worker.conf", nil, nil, true),
            ("status", "/etc/refresh-worker/refresh-worker.conf", nil, true),
            ("status --config /root/mine.conf", nil, nil, false),
            ("status", "/root/mine.conf", nil, false),
            ("status", "", nil, true),
            ("status --no-switch", nil, nil, false),
            ("status", nil, "/run/credentials/mine", false),
            ("status", nil, "", true),
            ("keys generate", nil, nil, true),
            ("store copy --from /a --to /b", nil, nil, true),
            ("--run-once", nil, nil, true),
            ("", nil, nil, true),
            ("--config /etc/refresh-worker/refresh-worker.conf", nil, nil, false),
            ("--run-once --config /etc/refresh-worker/refresh-worker.conf", nil, nil, false),
            ("notices test", nil, nil, true),
            ("services credential mailer", nil, nil, false),
            ("google-events status --service-account-file /root/risc.json", nil, nil, false),
            ("version", nil, nil, false),
            ("status --help", nil, nil, false),
        ] as [(String, String?, String?, Bool)]
    )
    func needsUser(line: String, variable: String?, credentials: String?, expected: Bool) throws {
        var machine = Self.machine(Installation.file, home: nil)
        machine.environment["REFRESH_WORKER_CONFIG"] = variable
        machine.environment["CREDENTIALS_DIRECTORY"] = credentials
        let parsed = try Command.program.parse(line.split(separator: " ").map(String.init))
        machine.flags = parsed.flags.map { ($0.name, $0.value) }
        #expect(Installation.needsUser(for: parsed, with: machine.inputs) == expected)
    }

    @Test("does not make root another user on a machine without it")
    func notInstalled() throws {
        let parsed = try Command.program.parse(["status"])
        #expect(!Installation.needsUser(for: parsed, with: Self.machine().inputs))
    }

    @Test("every command that uses files of the service shows --no-switch")
    func flag() throws {
        for command in Command.program.tree where !command.isGroup {
            let help = try #require(try Command.program.parse(command.words + ["--help"]).text)
            #expect(help.contains("--no-switch") == command.usesServiceFiles, "\(command.invocation)")
        }
    }
}
