import Crypto
import Storage
import Testing

@testable import RefreshWorker

@Suite("A file of client secrets", .timeLimit(.minutes(10)))
struct ClientSecretFileTests {
    private static let path = "/etc/refresh-worker/client-secret"

    @Test(
        "gives each secret to its own client id",
        arguments: [
            ("only-secret\n", ["one"], ["one": "only-secret"]),
            ("only-secret", ["one"], ["one": "only-secret"]),
            ("# of the test server\r\n\r\nonly-secret\r\n", ["one"], ["one": "only-secret"]),
            ("one first\ntwo\tsecond\n", ["one", "two"], ["one": "first", "two": "second"]),
            ("  two   second  \n", ["one", "two"], ["two": "second"]),
            ("one first", ["one"], ["one": "first"]),
        ] as [(String, [String], [String: String])]
    )
    func taken(text: String, clientIDs: [String], secrets: [String: String]) throws {
        let file = try ClientSecretFile(parsing: Secret(text), path: Self.path, clientIDs: clientIDs)
        #expect(file.secrets.mapValues { $0.reveal() } == secrets)
        #expect(file.warning == nil)
    }

    @Test("keeps the secret of a Google client id that is not configured, and warns about it")
    func unconfigured() throws {
        let former = "1-former.apps.googleusercontent.com"
        let other = "2-other.apps.googleusercontent.com"
        let text = Secret("\(former) hush\none hush-too\n\(other) hush-as-well\n")
        for clientIDs in [["one"], ["one", "two"]] {
            let file = try ClientSecretFile(parsing: text, path: Self.path, clientIDs: clientIDs)
            #expect(
                file.secrets.mapValues { $0.reveal() } == [former: "hush", "one": "hush-too", other: "hush-as-well"]
            )
            #expect(file.unconfiguredClientIDs == [former, other])
            #expect(file.warning?.contains("'\(former)', '\(other)'") == true)
            #expect(file.warning?.contains("hush") == false)
            #expect(file.warning?.contains("no secret for 'two'") == clientIDs.contains("two"))
        }
        let none = try ClientSecretFile(parsing: Secret("\(former) hush"), path: Self.path, clientIDs: [])
        #expect(none.unconfiguredClientIDs == [former])
    }

    @Test(
        "is refused with the line number of the mistake",
        arguments: [
            ("", ["one"], "is empty"),
            ("# nothing else\n", ["one"], "is empty"),
            ("hush\n", [], "line 1: holds a secret without its client id, and no client id is configured"),
            ("\nhush\n", ["one", "two"], "line 2: holds a secret without its client id, and 2 client ids are"),
            ("hush\nhush-too\n", ["one"], "line 1: has 1 word"),
            ("one hush\nhush-too\n", ["one"], "line 2: has 1 word"),
            ("one hush too\n", ["one"], "line 1: has 3 words"),
            ("three hush\n", ["one", "two"], "line 1: begins neither with a configured client id nor with one"),
            (".apps.googleusercontent.com hush\n", ["one"], "line 1: begins neither"),
            ("1-a.apps.googleusercontent.com.example hush\n", ["one"], "line 1: begins neither"),
            ("hush 1-a.apps.googleusercontent.com\n", ["one"], "line 1: begins neither"),
            (
                "\(String(repeating: "1", count: 256)).apps.googleusercontent.com hush\n", ["one"],
                "line 1: begins neither"
            ),
            (
                "1-a.apps.googleusercontent.com hush\n1-a.apps.googleusercontent.com hush\n", ["one"],
                "line 2: is the second"
            ),
            ("one hush\n# other\none hush-too\n", ["one"], "line 3: is the second one for client id"),
            ("one hu\u{7}sh\n", ["one"], "line 1: holds a character"),
            ("one hush\u{A0}too\n", ["one"], "line 1: holds a character"),
        ]
    )
    func refused(text: String, clientIDs: [String], complaint: String) {
        let failure = #expect(throws: CommandError.self) {
            try ClientSecretFile(parsing: Secret(text), path: Self.path, clientIDs: clientIDs)
        }
        #expect(failure?.exitCode == .configuration)
        #expect(failure?.message.hasPrefix("--client-secret-file: \(Self.path)") == true)
        #expect(failure?.message.contains(complaint) == true, "\(failure?.message ?? "")")
        #expect(failure?.message.contains("hush") == false)
    }

    @Test(
        "ends a command if it is unreadable, empty, open to others or malformed",
        arguments: [
            ("none", "cannot be read"), ("empty", "is empty"), ("open", "chmod 600"), ("two", "line 1: has 1 word"),
        ]
    )
    func badFile(name: String, advice: String) async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write("\n", to: "empty")
            try fixture.write("secret\n", to: "open", mode: 0o644)
            try fixture.write("secret\nformer-secret\n", to: "two")
            let context = try fixture.context([(.clientSecretFile, fixture.path(name)), (.clientID, "one")])
            _ = try await context.run(["keys", "generate"])
            try await fixture.openStore().close()
            let failure = await #expect(throws: CommandError.self) {
                _ = try await context.run(["token", "alice", "--min-ttl", "0"])
            }
            #expect(failure?.exitCode == .configuration)
            #expect(failure?.message.hasPrefix("--client-secret-file: ") == true)
            #expect(failure?.message.contains(advice) == true, "\(failure?.message ?? "")")
        }
    }
}
