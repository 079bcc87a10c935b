import Testing

@testable import Worker

@Suite("The command line")
struct CommandLineTests {
    @Test(
        "is parsed",
        arguments: [
            ([], .work),
            (["--run-once"], .work),
            (["grants", "list"], .listGrants(GrantListOptions())),
            (
                ["grants", "list", "--json", "--state", "active"],
                .listGrants(GrantListOptions(state: "active", isJSON: true))
            ),
            (
                ["--json", "grants", "--state=disconnected", "list"],
                .listGrants(GrantListOptions(state: "disconnected", isJSON: true))
            ),
            (
                [
                    "grants", "list", "--reason", "client_mismatch", "--client", "c", "--expired", "--sort", "due",
                    "--limit", "5",
                ],
                .listGrants(
                    GrantListOptions(
                        reason: "client_mismatch",
                        clientID: "c",
                        isExpired: true,
                        order: .due,
                        limit: 5
                    )
                )
            ),
            (["grants", "list", "--unreadable"], .listGrants(GrantListOptions(isUnreadable: true))),
            (["grants", "history", "alice", "--json"], .showHistory(user: "alice", isJSON: true)),
            (["grants", "retry", "alice"], .retryGrants(GrantRetryOptions(user: "alice"))),
            (
                ["grants", "retry", "--state", "suspended", "--client", "c", "--json"],
                .retryGrants(GrantRetryOptions(state: "suspended", clientID: "c", isJSON: true))
            ),
            (["grants", "set-client", "--from", "a", "--to", "b"], .setClient(from: "a", to: "b", isJSON: false)),
            (["users", "list"], .listUsers(isJSON: false)),
            (["users", "show", "alice", "--json"], .showUser(user: "alice", isJSON: true)),
            (["users", "delete", "alice"], .deleteUser(user: "alice", isJSON: false)),
            (["grants", "show", "alice", "--json"], .showGrant(user: "alice", isJSON: true)),
            (["grants", "show", "--", "--odd"], .showGrant(user: "--odd", isJSON: false)),
            (["grants", "show", "list"], .showGrant(user: "list", isJSON: false)),
            (["grants", "add", "alice"], .addGrant(user: "alice", tokenFile: nil, clientID: nil)),
            (
                ["--client-id", "c", "grants", "add", "alice", "--token-file=t"],
                .addGrant(user: "alice", tokenFile: "t", clientID: "c")
            ),
            (["users", "import", "-"], .importUsers(UserImportOptions(file: "-"))),
            (
                ["users", "import", "f", "--replace", "--dry-run", "--map=paypulse"],
                .importUsers(UserImportOptions(file: "f", map: .payPulse, replacesExisting: true, isDryRun: true))
            ),
            (["grants", "import", "-"], .importGrants(GrantImportOptions(file: "-"))),
            (
                ["grants", "import", "f", "--replace", "--dry-run"],
                .importGrants(GrantImportOptions(file: "f", replacesExisting: true, isDryRun: true))
            ),
            (
                ["grants", "import", "--from", "aws-secrets-manager", "-"],
                .importGrants(GrantImportOptions(file: "-", prefix: "gmail/user/"))
            ),
            (
                [
                    "grants", "import", "f", "--from=aws-secrets-manager", "--prefix", "a/b_+=.@-", "--dry-run",
                    "--replace",
                ],
                .importGrants(
                    GrantImportOptions(file: "f", prefix: "a/b_+=.@-", replacesExisting: true, isDryRun: true)
                )
            ),
            (["grants", "export"], .exportGrants(isPlaintext: false)),
            (["grants", "export", "--plaintext"], .exportGrants(isPlaintext: true)),
            (["grants", "disconnect", "alice"], .disconnectGrant(user: "alice", isJSON: false)),
            (["token", "alice"], .vendToken(user: "alice", minimumLifetime: .seconds(60))),
            (["token", "alice", "--min-ttl", "300"], .vendToken(user: "alice", minimumLifetime: .seconds(300))),
            (["keys", "generate"], .generateKeys()),
            (["keys", "list"], .listKeys()),
            (["keys", "list", "--json"], .listKeys(isJSON: true)),
            (["keys", "rotate"], .rotateKeys()),
            (["keys", "retire", "k1"], .retireKey(id: "k1", isLost: false)),
            (["keys", "retire", "--lost", "k1"], .retireKey(id: "k1", isLost: true)),
            (["status"], .showStatus(isJSON: false)),
            (["status", "--json"], .showStatus(isJSON: true)),
            (["status", "--watch"], .watchStatus(isJSON: false)),
            (["status", "--watch", "--json"], .watchStatus(isJSON: true)),
            (["doctor"], .examine()),
            (["services", "credential", "mailer"], .makeCredential(service: "mailer")),
            (["services", "credential", "--operator", "jane"], .makeCredential(service: "jane", isOperator: true)),
            (["services", "handle", "mailer", "u"], .makeHandle(service: "mailer", user: "u")),
            (
                ["grants", "import", "f", "--json"],
                .importGrants(GrantImportOptions(file: "f", isJSON: true))
            ),
            (["notices", "replay"], .replayNotices(user: nil, within: .seconds(86_400))),
            (["notices", "replay", "--within", "60", "--user", "u"], .replayNotices(user: "u", within: .seconds(60))),
            (
                ["google-events", "register", "--url", "https://a.example/e", "--service-account-file", "f"],
                .manageGoogleEvents(
                    GoogleEventsOptions(
                        action: .register(url: "https://a.example/e"),
                        serviceAccountFile: "f",
                        endpoint: nil
                    )
                )
            ),
            (["backup", "f"], .backUp(file: "f")),
            (["backup", "f", "--json"], .backUp(file: "f", isJSON: true)),
            (["services", "credential", "m", "--json"], .makeCredential(service: "m", isJSON: true)),
            (["services", "handle", "m", "u", "--json"], .makeHandle(service: "m", user: "u", isJSON: true)),
            (["version"], .showVersion()),
            (["--version"], .showVersion()),
            (["version", "--json"], .showVersion(isJSON: true)),
            (["--version", "--json"], .showVersion(isJSON: true)),
            (
                ["token", "alice", "--json"],
                .vendToken(user: "alice", minimumLifetime: .seconds(60), isJSON: true)
            ),
            (["keys", "generate", "--json"], .generateKeys(isJSON: true)),
            (["keys", "generate", "--lost"], .generateKeys(isLost: true)),
            (["keys", "rotate", "--json"], .rotateKeys(isJSON: true)),
            (["keys", "retire", "k1", "--json"], .retireKey(id: "k1", isLost: false, isJSON: true)),
            (["doctor", "--json"], .examine(isJSON: true)),
            (["store", "copy", "--from", "a", "--to", "b", "--json"], .copyStore(from: "a", to: "b", isJSON: true)),
            (["results", "recover", "f", "--json"], .recoverResults(file: "f", isJSON: true)),
            (
                ["google-events", "verify", "--service-account-file", "f", "--json"],
                .manageGoogleEvents(
                    GoogleEventsOptions(
                        action: .verify(state: "refresh-worker"),
                        serviceAccountFile: "f",
                        endpoint: nil,
                        isJSON: true
                    )
                )
            ),
        ] as [([String], Command)]
    )
    func understood(arguments: [String], command: Command) throws {
        #expect(try CommandSpecification.program.parse(arguments).command == command)
    }

    @Test("accepts settings before and after the command, in both spellings")
    func gathersSettings() throws {
        let arguments = [
            "--database", "a", "grants", "--client-id=x", "list", "--metrics-log", "-", "--client-id", "y",
        ]
        let invocation = try CommandSpecification.program.parse(arguments)
        #expect(
            invocation.flags == [
                .init(name: .database, value: "a"), .init(name: .clientID, value: "x"),
                .init(name: .metricsLog, value: "-"), .init(name: .clientID, value: "y"),
            ]
        )
        #expect(try CommandSpecification.program.parse(["--run-once"]).flags == [.init(name: .runOnce, value: "yes")])
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
            (["grants", "list", "x"], "takes no operand; 1 operands", "refresh-worker grants list"),
            (["grants", "show"], "takes USER; 0 operands", "refresh-worker grants show"),
            (["grants", "show", "a", "b"], "2 operands", "refresh-worker grants show"),
            (["grants", "show", ""], "USER is empty", "refresh-worker grants show"),
            (["grants", "show", "a\u{1b}[2J"], "control characters", "refresh-worker grants show"),
            (["grants", "show", String(repeating: "u", count: 1025)], "1025 bytes", "refresh-worker grants show"),
            (["grants", "list", "--state", "actve"], "did you mean active?", "refresh-worker grants list"),
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
        ]
    )
    func refused(arguments: [String], reason: String, invocation: String) throws {
        let error = try #require(throws: UsageError.self) { try CommandSpecification.program.parse(arguments) }
        #expect(error.description.contains(reason), "\(error)")
        #expect(error.description.hasSuffix("'\(invocation) --help' explains it."))
        #expect(error.exitCode.rawValue == 64)
    }

    @Test("names every wrong flag at once")
    func namesAll() throws {
        let error = try #require(throws: UsageError.self) {
            try CommandSpecification.program.parse(["--nonsense", "--rubbish=1", "--database"])
        }
        #expect(error.problems.count == 3)
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
            let error = try #require(throws: UsageError.self) { try CommandSpecification.program.parse(line) }
            #expect(!error.description.contains(secret), "\(line.count) arguments")
        }
        let error = try #require(throws: UsageError.self) {
            try CommandSpecification.program.parse(["grants", "add", "alice", secret])
        }
        #expect(error.description.contains("looks like a token"))
    }
}
