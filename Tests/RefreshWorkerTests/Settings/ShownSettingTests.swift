import Base
import Testing

@testable import RefreshWorker

@Suite("The settings that config show prints")
struct ShownSettingTests {
    private static func shown(_ machine: TestMachine) -> [ShownSetting] {
        ConfigurationResolver(machine.inputs).shown()
    }

    private static func setting(_ name: Setting.Name, of machine: TestMachine) throws -> ShownSetting {
        try #require(shown(machine).first { $0.name == name })
    }

    @Test("are all of them, with the value that counts and where it comes from")
    func sources() throws {
        let machine = TestMachine(
            flags: [(.maxRate, "5")],
            environment: ["REFRESH_WORKER_LOG_LEVEL": "debug", "REFRESH_WORKER_MAX_RATE": "6"],
            file: "REFRESH_WORKER_MAX_RATE=7\n\nREFRESH_WORKER_STOP_DEADLINE=30\nREFRESH_WORKER_LOG_LEVEL=info"
        )
        #expect(Self.shown(machine).map(\.name) == Setting.all.map(\.name))
        let rate = try Self.setting(.maxRate, of: machine)
        #expect(rate.value == "5" && rate.source == .flag && rate.place == nil)
        let level = try Self.setting(.logLevel, of: machine)
        #expect(level.value == "debug" && level.source == .environment && level.place == "REFRESH_WORKER_LOG_LEVEL")
        let deadline = try Self.setting(.stopDeadline, of: machine)
        #expect(deadline.value == "30" && deadline.source == .file && deadline.place == "/etc/worker.conf:3")
        let interval = try Self.setting(.summaryInterval, of: machine)
        #expect(interval.value == "60" && interval.source == .standard && interval.place == nil)
        let listener = try Self.setting(.listen, of: machine)
        #expect(listener.value == nil && listener.source == .unset)
    }

    @Test("have all values of a flag that repeats")
    func repeated() throws {
        let ids = ["1-a.apps.googleusercontent.com", "2-b.apps.googleusercontent.com"]
        let machine = TestMachine(flags: ids.map { (.clientID, $0) })
        #expect(try Self.setting(.clientID, of: machine).value == ids.joined(separator: ","))
    }

    @Test("name the credential that systemd passes instead of the default")
    func credentials() throws {
        let machine = TestMachine(
            environment: ["CREDENTIALS_DIRECTORY": "/run/credentials/x"],
            files: ["/run/credentials/x/key-ring": ""]
        )
        let keys = try Self.setting(.keyFile, of: machine)
        #expect(keys.value == "/run/credentials/x/key-ring" && keys.source == .credential)
        #expect(try Self.setting(.servicesFile, of: machine).source == .unset, "this one is not passed")
    }

    @Test(
        "never have a password or a token",
        arguments: [
            (Setting.Name.database, "postgres://worker:hunter2@db/x", "postgres://worker@db/x"),
            (.database, "url-file:/etc/refresh-worker/url", "url-file:/etc/refresh-worker/url"),
            (.noticeURL, "https://example.com/hook?key=hunter2", "https://example.com/hook?…"),
            (.keyCommand, "age \u{301}hunter2", "age …"),
            (.keyCommand, "age\t\u{301}hunter2", "age …"),
            (.noticeURL, "https://example.com/hook?\u{301}hunter2", "https://example.com/hook?…"),
            (.appIssuer, "1//hunter2", "(not shown: it looks like a token or a secret)"),
            (.appIssuer, "a\u{1b}[2Jb", #"a\u{1b}[2Jb"#),
        ]
    )
    func secrets(name: Setting.Name, value: String, shown: String) throws {
        let machine = TestMachine(environment: [name.environmentName: value])
        #expect(try Self.setting(name, of: machine).value == shown)
    }

    @Test("stand below a title for each source, folded to the terminal")
    func text() {
        let machine = TestMachine(flags: [(.maxRate, "5")], file: "REFRESH_WORKER_STOP_DEADLINE=30")
        let text = Self.shown(machine).text(for: TextForm())
        #expect(text.hasPrefix("From the command line:\n  config    /etc/worker.conf\n  max-rate  5\n\nFrom the "))
        let file = "From the configuration file /etc/worker.conf:\n  stop-deadline  30 (line 1)\n\nDefaults:\n"
        #expect(text.contains("\n" + file))
        #expect(text.contains("\nNot set:\n  key-command, key-wrap-command, client-id, "))
        for line in Self.shown(machine).text(for: TextForm(terminalWidth: 60)).split(separator: "\n") {
            #expect(line.count <= 60 || line.contains("https://") || line.contains("/var/lib"), "\(line)")
        }
    }
}
