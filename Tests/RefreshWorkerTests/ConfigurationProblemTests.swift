import Base
import Testing

@testable import RefreshWorker

@Suite("A wrong configuration")
struct ConfigurationProblemTests {
    /// A setting, a value and a part of the error.
    @Test(
        "is refused, naming the setting",
        arguments: [
            (.maxRate, "0", "above 0"), (.maxRate, "-1", "above 0"), (.maxRate, "100001", "up to 100000"),
            (.maxRate, "nan", "above 0"), (.maxRate, "inf", "above 0"), (.maxRate, "1e3", "above 0"),
            (.maxRate, "0x10", "above 0"), (.maxRate, "1.2.3", "above 0"), (.maxRate, "٣", "above 0"),
            (.summaryInterval, "0", "from 1 to 86400"), (.summaryInterval, "1.5", "whole number"),
            (.stopDeadline, "3601", "from 1 to 3600"), (.stopDeadline, "99999999999999999999", "whole number"),
            (.logSample, "refresh.succeeded", "only lines of plain successes"),
            (.logSample, "vend=100", "refresh.succeeded=N"),
            (.logSample, "refresh.succeeded=-1", "from 0 to 1000000"),
            (.logLevel, "verbose", "not one of error, warning"), (.logLevel, "warn", "warning"),
            (.logLevel, "inof", "did you mean info?"), (.runOnce, "maybe", "neither yes nor no"),
            (.database, "", "is empty"), (.database, "a\nb", "one line"), (.keyFile, "a\0b", "without NUL"),
            (.caFile, String(repeating: "x", count: 4097), "longer than 4096 bytes"),
            (.clientID, "two words", "not a client id"),
            (.clientID, String(repeating: "x", count: 257), "up to 256"),
            (.tokenEndpoint, "http://example.com/token", "is not https"),
            (.otlpEndpoint, "http://collector.example:4318", "is not https"),
            (.otlpEndpoint, "https://collector.example/?key=hush", "the URL has a query"),
            (.appKeys, "http://example.com/keys", "is not https"),
            (.revocationEndpoint, "ftp://example.com", "is not https"),
            (.userinfoEndpoint, "example.com", "does not begin with https://"),
        ] as [(Setting.Name, String, String)]
    )
    func badValue(name: Setting.Name, value: String, message: String) throws {
        let complaints = TestMachine(flags: [(name, value)]).complaints
        #expect(complaints.count == 1)
        let complaint = try #require(complaints.first)
        #expect(complaint.hasPrefix("--\(name.rawValue): "))
        #expect(complaint.contains(message))
        #expect(complaint.utf8.count < 400)
    }

    @Test("includes a list of separators alone", arguments: Setting.all.filter(\.isRepeatable), [",", " , ,"])
    func emptyList(setting: Setting, value: String) {
        let key = setting.name.environmentName
        for machine in [
            TestMachine(flags: [(setting.name, value)]), TestMachine(environment: [key: value]),
            TestMachine(file: "\(key)='\(value)'"),
        ] {
            #expect(machine.complaints.count == 1)
            #expect(machine.complaints.first?.contains(": names no ") == true)
            #expect(machine.complaints.first?.hasSuffix(": name one, or leave this setting out") == true)
        }
    }

    @Test("names the file and the line")
    func namesLine() {
        let machine = TestMachine(file: "\n# rate\nREFRESH_WORKER_MAX_RATE=fast")
        #expect(
            machine.complaints == [
                "/etc/worker.conf:3: REFRESH_WORKER_MAX_RATE: 'fast' is not a number above 0 and up to 100000"
            ]
        )
    }

    /// A key of the file and the suggested name.
    @Test(
        "suggests the nearest name",
        arguments: [
            ("REFRESH_WORKER_MAX_RTAE", "REFRESH_WORKER_MAX_RATE"),
            ("refresh_worker_max_rate", "REFRESH_WORKER_MAX_RATE"),
            ("MAX_RATE", "REFRESH_WORKER_MAX_RATE"),
            ("max-rate", "REFRESH_WORKER_MAX_RATE"),
            ("GOOGLE_CLIENT_IDS", "GOOGLE_CLIENT_ID"),
        ]
    )
    func suggests(key: String, suggestion: String) {
        let complaint = "/etc/worker.conf:1: '\(key)' is not a setting; did you mean \(suggestion)?"
        #expect(TestMachine(file: "\(key)=1").complaints == [complaint])
    }

    @Test("includes an unknown variable of the worker, and not of other programs")
    func unknownVariable() {
        let machine = TestMachine(environment: ["REFRESH_WORKER_KEYFILE": "x", "HOME": "/", "REFRESH": "1"])
        #expect(
            machine.complaints == [
                """
                environment variable 'REFRESH_WORKER_KEYFILE': is not a setting; did you mean REFRESH_WORKER_KEY_FILE?
                """
            ]
        )
    }

    @Test("is reported completely, even values that another layer overrides")
    func reportsAll() throws {
        let machine = TestMachine(
            flags: [(.maxRate, "5"), (.logLevel, "loud")],
            environment: ["REFRESH_WORKER_RUN_ONCE": "perhaps"],
            file: "REFRESH_WORKER_MAX_RATE=0\nnonsense\nREFRESH_WORKER_UNHEARD_OF=1\nREFRESH_WORKER_CONFIG=/x"
        )
        let complaints = machine.complaints
        #expect(complaints.count == 6)
        for part in ["--log-level", "RUN_ONCE", "conf:1", "conf:2", "conf:3", "cannot be set in the"] {
            #expect(complaints.contains { $0.contains(part) }, "\(part) in \(complaints)")
        }
        #expect(throws: CommandError.self) { try machine.resolve() }
    }

    @Test("includes a missing file, and ends with 78")
    func missingFile() throws {
        let error = try #require(throws: CommandError.self) {
            try TestMachine(flags: [(.config, "/nowhere")]).resolve()
        }
        #expect(error.description == "configuration file '/nowhere': cannot be read: No such file or directory")
        #expect(error.exitCode.rawValue == 78)
    }

    @Test("ends with 64 if all of it is on the command line, as for a flag of one command, and otherwise with 78")
    func exitCodes() throws {
        let flag = (Setting.Name.maxRate, "fast")
        let argument = try #require(throws: CommandError.self) { try TestMachine(flags: [flag]).resolve() }
        #expect(argument.exitCode == .usage)
        let option = try #require(throws: CommandError.self) {
            try Command.program.parse(["grants", "list", "--limit", "fast"])
        }
        #expect(option.exitCode == .usage)
        let variable = try #require(throws: CommandError.self) {
            try TestMachine(flags: [flag], environment: ["REFRESH_WORKER_LOG_LEVEL": "loud"]).resolve()
        }
        #expect(variable.exitCode == .configuration)
        let file = try #require(throws: CommandError.self) {
            try TestMachine(flags: [(.database, "url-file:/nowhere")]).resolve()
        }
        #expect(file.exitCode == .configuration, "what a file holds is configuration")
    }

    /// A line of a file that is no configuration, and the secret part of it.
    @Test(
        "of a file that was named by mistake is reported without its content",
        arguments: [
            ("k20261129 Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE=", "Zm9vYmFyYmF6"),
            ("whsec_c2VjcmV0IG9mIG5vdGljZXM=", "c2VjcmV0"),
            ("postgres://worker:hunter2@db.example/grants?sslmode=require", "hunter2"),
            ("AbCdEfGhIjKlMnOp=", "AbCdEf"),
        ]
    )
    func hidesForeignFile(line: String, secret: String) {
        let complaints = TestMachine(file: line).complaints
        #expect(complaints == ["/etc/worker.conf:1: is not a setting; refresh-worker --help lists the settings"])
        #expect(complaints.allSatisfy { !$0.contains(secret) })
    }

    @Test("is reported without values that look like secrets", arguments: CredentialSamples.all)
    func hidesSecrets(secret: String) {
        for name in Setting.Name.allCases {
            let machines = [
                TestMachine(flags: [(name, secret)]),
                TestMachine(environment: [name.environmentName: secret, "REFRESH_WORKER_" + secret: "x"]),
                TestMachine(file: "\(name.environmentName)=\(secret)\n\(secret)=1\n\(secret)"),
            ]
            for machine in machines {
                #expect(!machine.complaints.isEmpty)
                #expect(machine.complaints.allSatisfy { !$0.contains(secret) })
            }
        }
    }

    @Test("includes a credential that is not a list of client ids")
    func badCredential() {
        var machine = TestMachine(environment: ["CREDENTIALS_DIRECTORY": "/c"])
        machine.files["/c/client-id"] = "good\nnot good\n"
        #expect(machine.complaints.count == 1)
        #expect(machine.complaints.first?.hasPrefix("credential client-id, line 2: 'not good'") == true)
    }
}

/// Made-up credentials in the forms that Google uses.
enum CredentialSamples {
    static let all = [
        "1//0gMadeUpRefreshToken-abc", "ya29.madeUpAccessToken", "GOCSPX-madeUpSecret", "4/0AMadeUpCode",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", "1/fFAGRNJru1FTz70BzhT3Zg-madeUpLongOldToken",
    ]
}

@Suite("Text that an error shows")
struct DisplayedTextTests {
    @Test(
        "is quoted, escaped and cut",
        arguments: [
            ("plain", "'plain'"), ("a\u{1b}[2J", "'a\\u{1b}[2J'"), ("\u{202e}x", "'\\u{202e}x'"), ("ü", "'ü'"),
            (String(repeating: "x", count: 81), "'\(String(repeating: "x", count: 80))…'"),
        ]
    )
    func shown(text: String, expected: String) {
        #expect(DisplayedText(text).description == expected)
    }

    @Test(
        "is recognised as a credential by its form",
        arguments: [
            ("/srv/4/0/file", false), ("/data/1//x", false), ("alice", false), ("user1/x", false), ("eyJ.txt", false),
            ("1/short", false), ("https://oauth2.googleapis.com/token", false), ("token=ya29.x", true),
            ("{\"refresh_token\":\"1//x\"}", true), (" 1//x", true), ("Bearer ya29.x", true),
        ]
    )
    func shape(text: String, isCredential: Bool) {
        #expect(text.holdsCredential == isCredential)
    }
}
