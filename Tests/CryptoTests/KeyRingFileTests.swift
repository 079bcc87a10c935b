import Base
import Foundation
import Testing

@testable import Crypto

@Suite("A key file")
struct KeyRingFileTests {
    @Test("is readable only by its owner, and holds one key that seals")
    func generate() throws {
        let folder = try TemporaryFolder()
        let id = try KeyRingFile.generate(path: folder.file("keys"))
        #expect(try folder.mode(of: "keys") == 0o600)
        #expect(try folder.names == ["keys"])
        let ring = try KeyRingFile.load(path: folder.file("keys"))
        #expect(ring.keyIDs == [id])
        #expect(ring.sealingKeyID == id)
    }

    @Test("is never overwritten", arguments: ["", "anything"])
    func noOverwrite(content: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(content)
        #expect(throws: fault(path, .alreadyExists)) { try KeyRingFile.generate(path: path) }
        #expect(try folder.text() == content)
        #expect(try folder.names == ["keys"])
    }

    @Test("is not created through a dangling link or in a missing folder")
    func noPlace() throws {
        let folder = try TemporaryFolder()
        let link = folder.file("keys")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.file("gone"))
        #expect(throws: fault(link, .alreadyExists)) { try KeyRingFile.generate(path: link) }
        let path = folder.file("none/keys")
        #expect(throws: fault(path, .folderMissing)) { try KeyRingFile.generate(path: path) }
        #expect(try folder.names == ["keys"])
    }

    @Test("may have comments, empty lines, blanks and the line ends of another system")
    func lenient() throws {
        let folder = try TemporaryFolder()
        let text =
            "# first\r\n\r\n  \t0000000a\t\(KeyText.zeroes)  pending \r\n   # second\n0000000b \(KeyText.counting)"
        let ring = try KeyRingFile.load(path: folder.write(text))
        #expect(ring.keyIDs.map(\.description) == ["0000000a", "0000000b"])
        #expect(ring.sealingKeyID.description == "0000000b")
    }

    struct BadText: CustomTestStringConvertible {
        let name: String
        let text: String
        var line: Int?
        let complaint: String

        var testDescription: String { name }
    }

    static let badTexts = [
        BadText(name: "empty", text: "", complaint: "has no key that seals"),
        BadText(name: "comments", text: "# a\n\n# b\n", complaint: "has no key that seals"),
        BadText(name: "pending only", text: "0000000a \(KeyText.zeroes) pending", complaint: "has no key that seals"),
        BadText(
            name: "one word",
            text: "# a\n\(KeyText.zeroes)\n",
            line: 2,
            complaint: "the line is not: <id> <base64 key>"
        ),
        BadText(
            name: "four words",
            text: "0000000a \(KeyText.zeroes) pending pending",
            line: 1,
            complaint: "only the word \"pending\", or \"retired\" and seconds"
        ),
        BadText(
            name: "capital id",
            text: "0000000A \(KeyText.zeroes)",
            line: 1,
            complaint: "the key's id is not eight"
        ),
        BadText(name: "long id", text: "0000000aa \(KeyText.zeroes)", line: 1, complaint: "the key's id is not eight"),
        BadText(
            name: "words swapped",
            text: "\(KeyText.zeroes) 0000000a",
            line: 1,
            complaint: "the key's id is not eight"
        ),
        BadText(name: "key too short", text: "\n\n0000000a AAAA", line: 3, complaint: "the key is not the base64"),
        BadText(
            name: "31 bytes",
            text: "0000000a AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
            line: 1,
            complaint: "the key is not the base64"
        ),
        BadText(
            name: "33 bytes",
            text: "0000000a AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            line: 1,
            complaint: "the key is not the base64"
        ),
        BadText(
            name: "stray bits",
            text: "0000000a AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",
            line: 1,
            complaint: "the key is not the base64"
        ),
        BadText(
            name: "foreign letter",
            text: "0000000a AAAAAAAAAAAAAAAAAAAA-AAAAAAAAAAAAAAAAAAAAAA=",
            line: 1,
            complaint: "the key is not the base64"
        ),
        BadText(
            name: "five words",
            text: "0000000a \(KeyText.zeroes) retired 1795342272 again",
            line: 1,
            complaint: "the line is not: <id> <base64 key>"
        ),
        BadText(
            name: "unknown mark",
            text: "0000000a \(KeyText.zeroes) retired",
            line: 1,
            complaint: "only the word \"pending\", or \"retired\" and seconds"
        ),
        BadText(
            name: "key after key",
            text: "0000000a \(KeyText.zeroes) \(KeyText.counting)",
            line: 1,
            complaint: "only the word \"pending\", or \"retired\" and seconds"
        ),
        BadText(
            name: "duplicate",
            text: "0000000a \(KeyText.zeroes)\n#\n0000000a \(KeyText.counting)\n",
            line: 3,
            complaint: "key 0000000a is in the file twice"
        ),
    ]

    @Test("that is damaged is refused by file, line and reason, and never quoted", arguments: badTexts)
    func damaged(bad: BadText) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(bad.text)
        let error = try #require(#expect(throws: FileError.self) { try KeyRingFile.load(path: path) })
        #expect(error.path == path)
        let start = bad.line.map { "key file \(path), line \($0): " } ?? "key file \(path) "
        #expect("\(error)".hasPrefix(start + bad.complaint), "\(error)")
        for (way, text) in renderings(of: error) {
            #expect(!text.contains("AAAAAAAA") && !text.contains("AAECAwQF"), "\(way) quotes the file")
        }
    }

    @Test("that is missing, not a file or too large is refused with advice")
    func unusable() throws {
        let folder = try TemporaryFolder()
        let missing = folder.file("keys")
        let error = try #require(#expect(throws: FileError.self) { try KeyRingFile.load(path: missing) })
        #expect(
            "\(error)" == """
                key file \(missing) does not exist: restore it from its copy, because a new key ring cannot open stored \
                tokens; only if none is stored yet, run: refresh-worker keys generate --key-file \(missing)
                """
        )
        #expect(
            error.descriptionWhileInUse
                == "key file \(missing) does not exist any more: put it back, or restore it from a backup"
        )
        #expect(throws: error) { try KeyRingFile.addPending(path: missing) }
        #expect(throws: fault(folder.path, .notRegular)) { try KeyRingFile.load(path: folder.path) }
        let large = try folder.write(String(repeating: "#", count: 65537), to: "large")
        #expect(throws: fault(large, .tooLarge)) { try KeyRingFile.load(path: large) }
    }

    @Test("that is a pipe is refused at once", .timeLimit(.minutes(10)))
    func pipe() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        try #require(mkfifo(path, 0o600) == 0)
        #expect(throws: fault(path, .notRegular)) { try KeyRingFile.load(path: path) }
    }

    @Test("that others can read or write is refused", arguments: [0o640, 0o604, 0o660, 0o644, 0o602, 0o601, 0o440])
    func openToOthers(mode: Int) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0000000a \(KeyText.zeroes)\n", mode: mode)
        let error = try #require(#expect(throws: FileError.self) { try KeyRingFile.load(path: path) })
        let octal = "0" + String(mode, radix: 8)
        #expect("\(error)" == "key file \(path) is readable by others (mode \(octal)): run: chmod 600 \(path)")
        #expect(throws: error) { try KeyRingFile.addPending(path: path) }
    }

    @Test(
        "that is a systemd credential may be readable by its group, but not by others",
        arguments: [(0o400, true), (0o440, true), (0o444, false), (0o460, false)]
    )
    func credential(mode: Int, isAccepted: Bool) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0000000a \(KeyText.zeroes)\n", mode: mode)
        for directory in [folder.path, folder.path + "/"] {
            if isAccepted {
                #expect(try KeyRingFile.load(path: path, credentialsDirectory: directory).keyIDs.count == 1)
            } else {
                #expect(throws: fault(path, .openToOthers(mode: "0" + String(mode, radix: 8), path: path))) {
                    try KeyRingFile.load(path: path, credentialsDirectory: directory)
                }
            }
        }
    }

    @Test("is not a credential only because its path begins like the credentials directory")
    func notACredential() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0000000a \(KeyText.zeroes)\n", mode: 0o440)
        let beginning = String(path.dropLast())
        #expect(throws: fault(path, .openToOthers(mode: "0440", path: path))) {
            try KeyRingFile.load(path: path, credentialsDirectory: beginning)
        }
        try FileManager.default.createDirectory(atPath: folder.file("inner"), withIntermediateDirectories: false)
        let climbing = folder.file("inner/../keys")
        #expect(throws: fault(climbing, .openToOthers(mode: "0440", path: climbing))) {
            try KeyRingFile.load(path: climbing, credentialsDirectory: folder.file("inner"))
        }
    }

    @Test("of another user is refused", .enabled(if: geteuid() == 0, "only root can give a file away"))
    func foreignOwner() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0000000a \(KeyText.zeroes)\n")
        try #require(chown(path, 4321, 4321) == 0)
        let error = try #require(throws: FileError.self) { try KeyRingFile.load(path: path) }
        #expect(
            "\(error)" == """
                key file \(path) belongs to user 4321, but user root is running: run the command as the owner: runuser -u \
                4321 -- refresh-worker …
                """
        )
        #expect(throws: error) {
            try KeyRingFile.load(path: path, credentialsDirectory: folder.path)
        }
    }

    @Test("that this user may not open is refused", .enabled(if: geteuid() != 0, "root may open any file"))
    func notAllowed() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0000000a \(KeyText.zeroes)\n", mode: 0)
        let error = try #require(throws: FileError.self) { try KeyRingFile.load(path: path) }
        #expect("\(error)".hasSuffix("(mode 0): run: chmod 600 \(path)"))
    }

    @Test("with random damage is read or refused, and never crashes", arguments: 0..<8 as Range<UInt64>)
    func randomDamage(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let folder = try TemporaryFolder()
        let whole = Array("# keys\n0000000a \(KeyText.zeroes)\n0000000b \(KeyText.counting) pending\n".utf8)
        let letters = Array(" \n\r\t#=09afzA+/pending\u{0}".utf8) + [0x80, 0xff]
        var outcomes: Set<Bool> = []
        for _ in 0..<200 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let index = Int.random(in: bytes.indices, using: &generator)
                let letter = letters[Int.random(in: letters.indices, using: &generator)]
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[index] = letter
                case 1: bytes.insert(letter, at: index)
                default: bytes.removeSubrange(index...)
                }
                if bytes.isEmpty { bytes = whole }
            }
            let path = try folder.write(bytes)
            do {
                let ring = try KeyRingFile.load(path: path)
                #expect((1...2).contains(ring.keyIDs.count))
                outcomes.insert(true)
            } catch {
                #expect(error.path == path)
                outcomes.insert(false)
            }
        }
        #expect(outcomes == [true, false], "the damage was all of one kind")
    }
}

/// The error of a key file, with what is wrong with it.
func fault(_ path: String, _ detail: KeyFileDetail) -> FileError {
    FileError("key file \(path) \(detail.text)", detail.kind, path: path)
}

/// What is wrong with a key file, and what to do.
struct KeyFileDetail {
    let text: String
    var kind = FileError.Kind.unfit

    static let alreadyExists = KeyFileDetail(
        text: "exists already and was not changed: remove it only if no stored token is sealed with its keys"
    )
    static let folderMissing = KeyFileDetail(
        text: "cannot be created, because its folder does not exist: create the folder first",
        kind: .folderMissing
    )
    static let notRegular = KeyFileDetail(
        text: "is not a regular file: give the path of a file that `refresh-worker keys generate` made"
    )
    static let noSealingKey = KeyFileDetail(
        text: "has no key that seals: restore it from a backup, or remove the word \"pending\" from a key's line"
    )
    static let tooLarge = KeyFileDetail(
        text: "is larger than 65536 bytes: it is not a key file, or has retired keys to remove"
    )

    static func sealingKey(_ id: KeyID) -> KeyFileDetail {
        KeyFileDetail(text: "still seals with key \(id): promote another key first")
    }

    static func unknownKey(_ id: KeyID) -> KeyFileDetail {
        KeyFileDetail(text: "has no key \(id): run: refresh-worker keys list")
    }

    static func duplicateKey(_ id: KeyID) -> KeyFileDetail {
        KeyFileDetail(text: "key \(id) is in the file twice: remove one of the two lines")
    }

    static func openToOthers(mode: String, path: String) -> KeyFileDetail {
        KeyFileDetail(text: "is readable by others (mode \(mode)): run: chmod 600 \(path)")
    }
}
