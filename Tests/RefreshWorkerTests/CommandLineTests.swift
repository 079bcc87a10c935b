import Testing

@testable import Commands
@testable import Worker

@Suite("The command line")
struct CommandLineTests {
    @Test(
        "is parsed",
        arguments: [
            ([], "RunWorker"),
            (["--run-once"], "RunWorker"),
            (["grants", "list"], "ListGrants"),
            (["grants", "list", "--json", "--state", "active"], "ListGrants state=active json"),
            (["--json", "grants", "--state=disconnected", "list"], "ListGrants state=disconnected json"),
            (
                [
                    "grants", "list", "--reason", "client_mismatch", "--client", "c", "--expired", "--sort", "due",
                    "--limit", "5",
                ], "ListGrants reason=client_mismatch clientID=c isExpired order=due limit=5"
            ),
            (["grants", "list", "--unreadable"], "ListGrants selectsUnreadable"),
            (["grants", "history", "alice", "--json"], "ShowHistory user=alice json"),
            (["grants", "retry", "alice"], "RetryGrants user=alice"),
            (
                ["grants", "retry", "--state", "suspended", "--client", "c", "--json"],
                "RetryGrants state=suspended clientID=c json"
            ),
            (["grants", "set-client", "--from", "a", "--to", "b"], "SetClient former=a clientID=b"),
            (["users", "list"], "ListUsers"),
            (["users", "show", "alice", "--json"], "ShowUser id=alice json"),
            (["users", "delete", "alice"], "DeleteUser id=alice"),
            (["grants", "show", "alice", "--json"], "ShowGrant user=alice json"),
            (["grants", "show", "--", "--odd"], "ShowGrant user=--odd"),
            (["grants", "show", "list"], "ShowGrant user=list"),
            (["grants", "add", "alice"], "AddGrant user=alice"),
            (
                ["--client-id", "c", "grants", "add", "alice", "--token-file=t"],
                "AddGrant user=alice tokenFile=t clientID=c"
            ),
            (["users", "import", "-"], "ImportUsers file=-"),
            (
                ["users", "import", "f", "--replace", "--dry-run", "--map=paypulse"],
                "ImportUsers file=f argument=paypulse replacesExisting isDryRun"
            ),
            (["grants", "import", "-"], "ImportGrants file=-"),
            (["grants", "import", "f", "--replace", "--dry-run"], "ImportGrants file=f replacesExisting isDryRun"),
            (["grants", "import", "--from", "aws-secrets-manager", "-"], "ImportGrants file=- prefix=gmail/user/"),
            (
                [
                    "grants", "import", "f", "--from=aws-secrets-manager", "--prefix", "a/b_+=.@-", "--dry-run",
                    "--replace",
                ], "ImportGrants file=f prefix=a/b_+=.@- replacesExisting isDryRun"
            ),
            (["grants", "export"], "ExportGrants"),
            (["grants", "export", "--plaintext"], "ExportGrants isPlaintext"),
            (["grants", "disconnect", "alice"], "DisconnectGrant user=alice"),
            (["token", "alice"], "PrintToken user=alice minimumLifetime=60.0 seconds"),
            (["token", "alice", "--min-ttl", "300"], "PrintToken user=alice minimumLifetime=300.0 seconds"),
            (["keys", "generate"], "GenerateKeys"),
            (["keys", "list"], "ListKeys"),
            (["keys", "list", "--json"], "ListKeys json"),
            (["keys", "rotate"], "RotateKeys"),
            (["keys", "retire", "k1"], "RetireKey text=k1"),
            (["keys", "retire", "--lost", "k1"], "RetireKey text=k1 isLost"),
            (["status"], "ShowStatus"),
            (["status", "--json"], "ShowStatus json"),
            (["status", "--watch"], "ShowStatus watches"),
            (["status", "--watch", "--json"], "ShowStatus watches json"),
            (["doctor"], "RunDoctor"),
            (["services", "credential", "mailer"], "MakeCredential service=mailer"),
            (["services", "credential", "--operator", "jane"], "MakeCredential service=jane isOperator"),
            (["services", "handle", "mailer", "u"], "MakeHandle service=mailer user=u"),
            (["grants", "import", "f", "--json"], "ImportGrants file=f json"),
            (["notices", "replay"], "ReplayNotices span=86400.0 seconds"),
            (["notices", "replay", "--within", "60", "--user", "u"], "ReplayNotices user=u span=60.0 seconds"),
            (
                ["google-events", "register", "--url", "https://a.example/e", "--service-account-file", "f"],
                "RegisterEvents serviceAccountFile=f url=https://a.example/e"
            ),
            (
                ["google-events", "status", "--service-account-file", "f", "--risc-endpoint", "https://b.example"],
                "ShowEvents serviceAccountFile=f endpoint=https://b.example"
            ),
            (["backup", "f"], "BackUp file=f"),
            (["backup", "f", "--json"], "BackUp file=f json"),
            (["services", "credential", "m", "--json"], "MakeCredential service=m json"),
            (["services", "handle", "m", "u", "--json"], "MakeHandle service=m user=u json"),
            (["version"], "ShowVersion"),
            (["--version"], "ShowVersion"),
            (["version", "--json"], "ShowVersion isJSON json"),
            (["--version", "--json"], "ShowVersion isJSON"),
            (["token", "alice", "--json"], "PrintToken user=alice minimumLifetime=60.0 seconds json"),
            (["keys", "generate", "--json"], "GenerateKeys json"),
            (["keys", "generate", "--lost"], "GenerateKeys isLost"),
            (["keys", "rotate", "--json"], "RotateKeys json"),
            (["keys", "retire", "k1", "--json"], "RetireKey text=k1 json"),
            (["doctor", "--json"], "RunDoctor json"),
            (["store", "copy", "--from", "a", "--to", "b", "--json"], "CopyStore source=a target=b json"),
            (["results", "recover", "f", "--json"], "RecoverResults path=f json"),
            (
                ["google-events", "verify", "--service-account-file", "f", "--json"],
                "VerifyEvents serviceAccountFile=f state=refresh-worker json"
            ),
        ]
    )
    func understood(arguments: [String], expected: String) throws {
        let invocation = try CommandSpecification.program.parse(arguments)
        let words = ["\(type(of: invocation.command))"] + Self.values(in: invocation.command)
        #expect((words + (invocation.printsJSON ? ["json"] : [])).joined(separator: " ") == expected)
    }

    /// The properties of a command that are set, and those of the structs in them.
    private static func values(in value: Any) -> [String] {
        Mirror(reflecting: value).children.flatMap { child -> [String] in
            let name = child.label ?? ""
            let content = Mirror(reflecting: child.value)
            switch child.value {
            case let isSet as Bool: return isSet ? [name] : []
            case let text as String: return ["\(name)=\(text)"]
            case let duration as Duration: return ["\(name)=\(duration)"]
            default: break
            }
            if content.displayStyle == .optional {
                guard let wrapped = content.children.first?.value else { return [] }
                return ["\(name)=\(wrapped)"]
            }
            return content.displayStyle == .struct ? values(in: child.value) : []
        }
    }

    @Test("accepts settings before and after the command, in both spellings")
    func gathersSettings() throws {
        let arguments = [
            "--database", "a", "grants", "--client-id=x", "list", "--metrics-log", "-", "--client-id", "y",
        ]
        let invocation = try CommandSpecification.program.parse(arguments)
        let flags = invocation.flags.map { "\($0.name.rawValue)=\($0.value)" }
        #expect(flags == ["database=a", "client-id=x", "metrics-log=-", "client-id=y"])
        let pass = try CommandSpecification.program.parse(["--run-once"]).flags
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
