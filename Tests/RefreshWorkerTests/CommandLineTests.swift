import Testing

@testable import RefreshWorker

@Suite("The command line")
struct CommandLineTests {
    @Test(
        "is parsed",
        arguments: [
            ([], ""),
            (["--run-once"], ""),
            (["grants", "list"], "grants list"),
            (["grants", "list", "--json", "--state", "active"], "grants list json state=active"),
            (["--json", "grants", "--state=disconnected", "list"], "grants list json state=disconnected"),
            (
                [
                    "grants", "list", "--reason", "client_mismatch", "--client", "c", "--expired", "--sort", "due",
                    "--limit", "5",
                ], "grants list client=c expired limit=5 reason=client_mismatch sort=due"
            ),
            (["grants", "list", "--unreadable"], "grants list unreadable"),
            (["grants", "list", "--label", "tenant=a=b"], "grants list label=tenant=a=b"),
            (
                ["grants", "list", "--since", "24h", "--email", "A@b.c"], "grants list email=A@b.c since=24h"
            ),
            (["grants", "history", "alice", "--json"], "grants history alice json"),
            (["grants", "history", "alice", "--connection", "work"], "grants history alice connection=work"),
            (["grants", "retry", "alice"], "grants retry alice"),
            (["grants", "retry", "alice", "--connection=work"], "grants retry alice connection=work"),
            (
                ["grants", "retry", "--state", "suspended", "--client", "c", "--json"],
                "grants retry client=c json state=suspended"
            ),
            (["grants", "set-client", "--from", "a", "--to", "b"], "grants set-client from=a to=b"),
            (["users", "list"], "users list"),
            (
                ["users", "list", "--limit", "3", "--state", "deleted", "--email", "a@b.c"],
                "users list email=a@b.c limit=3 state=deleted"
            ),
            (["users", "delete", "alice", "--dry-run", "--yes"], "users delete alice dry-run yes"),
            (["grants", "disconnect", "alice", "--dry-run", "--yes"], "grants disconnect alice dry-run yes"),
            (["grants", "export", "--json", "--plaintext"], "grants export json plaintext"),
            (["backup", "f", "--archive", "--with-secrets", "--keep", "9"], "backup f archive keep=9 with-secrets"),
            (["users", "show", "alice", "--json"], "users show alice json"),
            (["users", "delete", "alice"], "users delete alice"),
            (["grants", "show", "alice", "--json"], "grants show alice json"),
            (["grants", "show", "--", "--odd"], "grants show --odd"),
            (["grants", "show", "list"], "grants show list"),
            (["grants", "show", "alice", "--connection", "c7f3kq2mwz"], "grants show alice connection=c7f3kq2mwz"),
            (["grants", "add", "alice"], "grants add alice"),
            (["grants", "add", "alice", "--connection", "work"], "grants add alice connection=work"),
            (
                ["--client-id", "c", "grants", "add", "alice", "--token-file=t"],
                "grants add alice client-id=c token-file=t"
            ),
            (["users", "import", "-"], "users import -"),
            (
                ["users", "import", "f", "--replace", "--dry-run", "--map=paypulse"],
                "users import f dry-run map=paypulse replace"
            ),
            (["grants", "import", "-"], "grants import -"),
            (["grants", "import", "f", "--replace", "--dry-run"], "grants import f dry-run replace"),
            (["grants", "import", "--from", "aws-secrets-manager", "-"], "grants import - from=aws-secrets-manager"),
            (
                [
                    "grants", "import", "f", "--from=aws-secrets-manager", "--prefix", "a/b_+=.@-", "--dry-run",
                    "--replace",
                ], "grants import f dry-run from=aws-secrets-manager prefix=a/b_+=.@- replace"
            ),
            (["grants", "export"], "grants export"),
            (["grants", "export", "--plaintext"], "grants export plaintext"),
            (["grants", "disconnect", "alice"], "grants disconnect alice"),
            (["grants", "disconnect", "alice", "--connection", "work"], "grants disconnect alice connection=work"),
            (["token", "alice"], "token alice min-ttl=60"),
            (["token", "alice", "--min-ttl", "300"], "token alice min-ttl=300"),
            (["token", "alice", "--connection", "work"], "token alice connection=work min-ttl=60"),
            (["keys", "generate"], "keys generate"),
            (["keys", "list"], "keys list"),
            (["keys", "list", "--json"], "keys list json"),
            (["keys", "rotate"], "keys rotate"),
            (["keys", "retire", "k1"], "keys retire k1"),
            (["keys", "retire", "--lost", "k1"], "keys retire k1 lost"),
            (["status"], "status"),
            (["status", "--json"], "status json"),
            (["status", "--watch"], "status watch"),
            (["status", "--watch", "--json"], "status json watch"),
            (["doctor"], "doctor"),
            (["services", "credential", "mailer"], "services credential mailer"),
            (["services", "credential", "--operator", "jane"], "services credential jane operator"),
            (["services", "handle", "mailer", "u"], "services handle mailer u"),
            (["services", "handle", "m", "u", "--connection", "work"], "services handle m u connection=work"),
            (["--connections-per-user", "3"], ""),
            (["grants", "import", "f", "--json"], "grants import f json"),
            (["notices", "test"], "notices test"),
            (["notices", "replay"], "notices replay within=86400"),
            (["notices", "replay", "--within", "60", "--user", "u"], "notices replay user=u within=60"),
            (
                ["google-events", "register", "--url", "https://a.example/e", "--service-account-file", "f"],
                "google-events register service-account-file=f url=https://a.example/e"
            ),
            (
                ["google-events", "status", "--service-account-file", "f", "--risc-endpoint", "https://b.example"],
                "google-events status risc-endpoint=https://b.example service-account-file=f"
            ),
            (["backup", "f"], "backup f"),
            (["backup", "f", "--json"], "backup f json"),
            (["services", "credential", "m", "--json"], "services credential m json"),
            (["services", "handle", "m", "u", "--json"], "services handle m u json"),
            (["version"], "version"),
            (["--version"], "version"),
            (["version", "--json"], "version json"),
            (["--version", "--json"], "version json"),
            (["token", "alice", "--json"], "token alice json min-ttl=60"),
            (["keys", "generate", "--json"], "keys generate json"),
            (["keys", "generate", "--lost"], "keys generate lost"),
            (["keys", "rotate", "--json"], "keys rotate json"),
            (["keys", "retire", "k1", "--json"], "keys retire k1 json"),
            (["doctor", "--json"], "doctor json"),
            (["store", "copy", "--from", "a", "--to", "b", "--json"], "store copy from=a json to=b"),
            (["results", "recover", "f", "--json"], "results recover f json"),
            (
                ["google-events", "verify", "--service-account-file", "f", "--json"],
                "google-events verify json service-account-file=f state=refresh-worker"
            ),
        ]
    )
    func understood(arguments: [String], expected: String) throws {
        let parsed = try Command.program.parse(arguments)
        let options = parsed.options.map { $0.value.isEmpty ? $0.key : "\($0.key)=\($0.value)" }
        let words = parsed.command.words + parsed.operands + options.sorted()
        #expect(words.joined(separator: " ") == expected)
        #expect(parsed.printsJSON == expected.split(separator: " ").contains("json"))
    }

    @Test("accepts settings before and after the command, in both spellings")
    func gathersSettings() throws {
        let arguments = [
            "--database", "a", "grants", "--client-id=x", "list", "--metrics-log", "-", "--client-id", "y",
        ]
        let parsed = try Command.program.parse(arguments)
        let flags = parsed.flags.map { "\($0.name.rawValue)=\($0.value)" }
        #expect(flags == ["database=a", "client-id=x", "metrics-log=-", "client-id=y"])
        let pass = try Command.program.parse(["--run-once"]).flags
        #expect(pass.map(\.name) == [.runOnce] && pass.map(\.value) == ["yes"])
    }

    @Test(
        "is refused with a reason and the name of the command's help",
        arguments: [
            (["--databse", "x"], "did you mean --database?", "refresh-worker"),
            (["--database"], "--database needs a value", "refresh-worker"),
            (["--database", "--json"], "--database needs a value", "refresh-worker"),
            (["--database="], "is empty", "refresh-worker"),
            (["--run-once=yes"], "--run-once takes no value", "refresh-worker"),
            (["-v"], "two dashes", "refresh-worker"),
            (["grnats"], "unknown command 'grnats'; did you mean grants?", "refresh-worker"),
            (["serve"], "the commands are grants, users, token", "refresh-worker"),
            (["grants"], "needs one of list, show", "refresh-worker grants"),
            (["grants", "lsit"], "did you mean list?", "refresh-worker grants"),
            (["grants", "list", "x"], "takes no operand; 1 operand given", "refresh-worker grants list"),
            (["grants", "show"], "takes USER; 0 operands", "refresh-worker grants show"),
            (["grants", "show", "a", "b"], "2 operands", "refresh-worker grants show"),
            (["grants", "show", ""], "USER is empty", "refresh-worker grants show"),
            (["grants", "show", "a\u{1b}[2J"], "control characters", "refresh-worker grants show"),
            (["grants", "show", String(repeating: "u", count: 1025)], "1025 bytes", "refresh-worker grants show"),
            (["grants", "list", "--state", "actve"], "did you mean active?", "refresh-worker grants list"),
            (
                ["grants", "show", "a", "--connection", "new"], "'new' must be 1 to 32 letters",
                "refresh-worker grants show"
            ),
            (["grants", "list", "--label", "tenant"], "'tenant' is not NAME=VALUE", "refresh-worker grants list"),
            (
                ["grants", "retry", "--state", "suspended", "--connection", "work"], "only with USER",
                "refresh-worker grants retry"
            ),
            (["grants", "list", "--plaintext"], "does not belong to", "refresh-worker grants list"),
            (["grants", "list", "--run-once"], "--run-once does not belong to", "refresh-worker grants list"),
            (["token", "a", "--min-ttl", "-1"], "whole number of seconds", "refresh-worker token"),
            (["token", "a", "--min-ttl", "1h"], "whole number of seconds", "refresh-worker token"),
            (["grants", "add", "a", "--refresh-token", "x"], "never arguments", "refresh-worker grants add"),
            (["grants", "import"], "takes FILE; 0 operands", "refresh-worker grants import"),
            (["grants", "import", "f", "--prefix", "p"], "only with --from", "refresh-worker grants import"),
            (["users", "import", "f", "--map", "x"], "'x' is not a known map", "refresh-worker users import"),
            (
                ["users", "import", "f", "--map", "emial=Mail"], "did you mean email?; the fields are user_id",
                "refresh-worker users import"
            ),
            (["users", "import", "f", "--map", "email=A,email=B"], "given twice", "refresh-worker users import"),
            (["users", "import", "f", "--map", "name="], "'name=' is not FIELD=NAME", "refresh-worker users import"),
            (
                ["grants", "import", "--from", "vault"], "not one of aws-secrets-manager",
                "refresh-worker grants import"
            ),
            (["grants", "import", "--prefix", "!x"], "is not up to 512", "refresh-worker grants import"),
            (["help", "grnats"], "did you mean grants?", "refresh-worker"),
            (["grants", "list", "--since", "24"], "not a time span such as 90s", "refresh-worker grants list"),
            (["users", "list", "--email", "alice"], "not an e-mail address", "refresh-worker users list"),
            (["backup", "f", "--with-secrets"], "needs --archive", "refresh-worker backup"),
        ]
    )
    func refused(arguments: [String], reason: String, invocation: String) throws {
        let error = try #require(throws: CommandError.self) { try Command.program.parse(arguments) }
        #expect(error.description.contains(reason), "\(error)")
        #expect(error.description.hasSuffix("'\(invocation) --help' explains it."))
        #expect(error.exitCode.rawValue == 64)
    }

    @Test(
        "a time span is a whole number and a unit, from a second to ten years",
        arguments: [
            ("1s", 1), ("90m", 5400), ("24h", 86_400), ("7d", 604_800), ("3650d", 315_360_000), ("0s", nil), ("h", nil),
            ("3651d", nil), ("1.5h", nil), ("-1h", nil), ("1w", nil), ("24 h", nil), ("9999999999d", nil), ("", nil),
        ] as [(String, Int?)]
    )
    func span(text: String, seconds: Int?) {
        #expect((try? SettingValue.span(text)) == seconds.map { .seconds($0) })
    }

    @Test(
        "only a clear yes lets a command go on",
        arguments: [
            ("y", true), ("Yes ", true), ("YES", true), ("", false), ("n", false), ("yep", false), (nil, false),
        ] as [(String?, Bool)]
    )
    func consent(line: String?, agrees: Bool) {
        #expect(IrreversibleChange.isConsent(line) == agrees)
    }

    @Test("names every wrong flag at once")
    func namesAll() throws {
        let error = try #require(throws: CommandError.self) {
            try Command.program.parse(["--nonsense", "--rubbish=1", "--database"])
        }
        #expect(
            error.message == """
                unknown flag '--nonsense'
                unknown flag '--rubbish'
                --database needs a value
                'refresh-worker --help' explains it.
                """
        )
    }

    @Test("refuses a token and does not print it", arguments: CredentialSamples.all)
    func hidesSecrets(secret: String) throws {
        let lines = [
            [secret], ["grants", secret], ["grants", "add", "alice", secret], ["token", secret], ["--" + secret],
            ["-" + secret], ["--refresh-token", secret], ["--refresh-token=" + secret], ["--client-id", secret],
            ["--run-once=" + secret], ["grants", "add", "alice", "--token-file", secret], ["help", secret],
            ["grants", "list", "--state=" + secret], ["grants", "add", "alice", "{\"refresh_token\":\"\(secret)\"}"],
        ]
        for line in lines {
            let error = try #require(throws: CommandError.self) { try Command.program.parse(line) }
            #expect(!error.description.contains(secret), "\(line.count) arguments")
        }
        let error = try #require(throws: CommandError.self) {
            try Command.program.parse(["grants", "add", "alice", secret])
        }
        #expect(error.description.contains("looks like a token"))
    }

    @Test("a command can only ask for flags that it declares")
    func undeclared() async {
        await #expect(processExitsWith: .failure) { _ = CommandArguments(command: .showVersion).has("plaintext") }
    }
}
