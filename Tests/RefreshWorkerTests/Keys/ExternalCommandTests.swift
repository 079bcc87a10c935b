import Base
import Testing

@testable import RefreshWorker

@Suite("The program of a setting")
struct ExternalCommandTests {
    struct Line: CustomTestStringConvertible {
        let text: String
        let words: [String]

        var testDescription: String { text }
    }

    static let lines = [
        Line(text: "age", words: ["age"]),
        Line(text: "  age\t --decrypt  -i /etc/id ", words: ["age", "--decrypt", "-i", "/etc/id"]),
        Line(text: "sh -c 'base64 -d | aws kms decrypt'", words: ["sh", "-c", "base64 -d | aws kms decrypt"]),
        Line(text: #"sh -c "echo 'it''s'""#, words: ["sh", "-c", "echo 'it''s'"]),
        Line(
            text: "vault write -field=plaintext 'transit/decrypt/a b'",
            words: [
                "vault", "write", "-field=plaintext", "transit/decrypt/a b",
            ]
        ),
        Line(text: "aws --query='Plain'\"text\"", words: ["aws", "--query=Plaintext"]),
        Line(text: "age '' \"\"", words: ["age", "", ""]),
        Line(
            text: #"age $HOME \x *.key | tee & ;"#,
            words: [
                "age", "$HOME", #"\x"#, "*.key", "|", "tee", "&", ";",
            ]
        ),
        Line(text: "'/opt/my tools/age' -d", words: ["/opt/my tools/age", "-d"]),
        // Each accent is one character together with the sign before it.
        Line(text: "sh '\u{301}a' \u{301}b", words: ["sh", "\u{301}a", "\u{301}b"]),
    ]

    @Test("is split at blanks, and quotes keep words together", arguments: lines)
    func split(line: Line) throws {
        #expect(try ExternalCommand(line.text).words == line.words)
    }

    @Test(
        "is refused with the reason",
        arguments: [
            (" ", "names no program"), ("'' -d", "names no program"), ("age 'a", "never closed"),
            ("age \"it's", "never closed"), ("./age -d", "begin it with /"), ("tools/age", "begin it with /"),
            ("tools/\u{301}age", "begin it with /"),
        ]
    )
    func refused(text: String, reason: String) throws {
        let error = try #require(throws: InputError.self) { try ExternalCommand(text) }
        #expect(error.message.contains(reason))
    }

    @Test("that writes the key ring needs the one that reads it")
    func pair() throws {
        let alone = TestMachine(file: "REFRESH_WORKER_KEY_WRAP_COMMAND=age -r age1").complaints
        #expect(alone.count == 1)
        #expect(alone.first?.hasPrefix("--key-wrap-command: needs --key-command") == true)
        let machine = TestMachine(
            file: "REFRESH_WORKER_KEY_COMMAND=sh -c 'age -d'\nREFRESH_WORKER_KEY_WRAP_COMMAND=age -r age1"
        )
        let configuration = try machine.resolve()
        #expect(configuration.keyCommand?.words == ["sh", "-c", "age -d"])
        #expect(configuration.keyWrapCommand?.words == ["age", "-r", "age1"])
    }

    @Test("is one of the files that root must not use if another user can change it")
    func owner() throws {
        let arguments = try Command.program.parse(["keys", "list"])
        let machine = TestMachine(
            flags: [(.config, "/etc/own.conf"), (.keyCommand, "/opt/unwrap -x"), (.database, "/var/own")],
            files: ["/etc/own.conf": ""]
        )
        let foreign = Installation.foreignFile(for: arguments, with: machine.inputs) { $0 != "/opt/unwrap" }
        #expect(foreign == "/opt/unwrap")
    }
}
