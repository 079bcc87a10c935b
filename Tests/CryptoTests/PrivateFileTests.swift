import Base
import Testing

@testable import Crypto

@Suite("A private file")
struct PrivateFileTests {
    @Test(
        "is read if only its owner may write it and other users cannot read it",
        arguments: [0o600, 0o400, 0o640, 0o440]
    )
    func good(mode: UInt32) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("value", to: "secret", mode: Int(mode))
        #expect(try Secret.read(privateFile: path) == Secret("value"))
    }

    @Test(
        "is refused, with the fix, if others may read it or the group may write it",
        arguments: [0o644, 0o604, 0o660, 0o602]
    )
    func open(mode: UInt32) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("value", to: "secret", mode: Int(mode))
        let error = FileError("\(path) is open to others (mode \(String(mode, radix: 8))): run: chmod 600 \(path)")
        #expect(throws: error) { try Secret.read(privateFile: path) }
    }

    @Test("is refused when it is a folder, is missing or is too long")
    func unusable() throws {
        let folder = try TemporaryFolder()
        #expect(throws: FileError("\(folder.path) is not a regular file")) {
            try Secret.read(privateFile: folder.path)
        }
        let path = try folder.write("12345", to: "secret", mode: 0o600)
        #expect(throws: FileError("\(path) is longer than 4 bytes")) {
            try Secret.read(privateFile: path, limit: 4)
        }
        #expect(throws: FileError.self) { try Secret.read(privateFile: "\(folder.path)/none") }
    }

    @Test(
        "is split into lines",
        arguments: [
            ("a", ["a"]), ("a\n", ["a"]), ("a\r\nb", ["a", "b"]), ("\n\na\n\nb\n", ["a", "b"]), ("", []), ("\n", []),
        ]
    )
    func lines(text: String, expected: [String]) {
        #expect(Secret(text).lines.map { $0.reveal() } == expected)
    }
}
