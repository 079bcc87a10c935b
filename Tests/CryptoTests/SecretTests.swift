import Base
import Foundation
import Testing

@testable import Crypto

@Suite("A secret")
struct SecretTests {
    @Test("gives back its original string", arguments: ["", "a", "ya29.token", "schlüssel 🔑", "with\u{0}zero"])
    func roundTrip(text: String) {
        let secret = Secret(text)
        #expect(secret.reveal() == text)
        #expect(secret.count == text.utf8.count)
        #expect(secret.isEmpty == text.isEmpty)
        #expect(Secret(utf8: Array(text.utf8)) == secret)
        #expect(secret.withBytes { $0.byteCount } == text.utf8.count)
    }

    @Test(
        "equals only one with the same bytes",
        arguments: [
            ("", "", true), ("abc", "abc", true), ("abc", "abd", false), ("abc", "ab", false), ("", "a", false),
        ]
    )
    func equality(left: String, right: String, isEqual: Bool) {
        #expect((Secret(left) == Secret(right)) == isEqual)
    }

    @Test("rethrows the error of its reader")
    func passesErrorsOn() {
        #expect(throws: CryptoError.notSealed) {
            try Secret("abc").withBytes { (_) throws(CryptoError) -> Int in throw .notSealed }
        }
    }

    @Test("leaves none of its bytes in memory after the last copy is released")
    func wiped() throws {
        let memory = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/mem"))
        func bytes(at address: UInt64, count: Int) throws -> [UInt8] {
            try memory.seek(toOffset: address)
            return try Array(memory.read(upToCount: count) ?? Data())
        }
        let pattern = { (index: Int) in UInt8(truncatingIfNeeded: index &* 131 ^ 0x5a) }
        // Small enough that the allocator keeps the page, large enough that its metadata covers little of it.
        let count = 4096

        var secret: Secret? = Secret(utf8: (0..<count).lazy.map(pattern))
        var copy = secret
        let address = try #require(
            secret?.withBytes { span in
                span.withUnsafeBytes { bytes in bytes.baseAddress.map { UInt64(UInt(bitPattern: $0)) } }
            }
        )
        #expect(try bytes(at: address, count: count) == (0..<count).map(pattern))
        secret = nil
        #expect(copy?.count == count)
        #expect(try bytes(at: address, count: count) == (0..<count).map(pattern), "a copy still owns the bytes")
        copy = nil
        let left = try bytes(at: address, count: count)
        #expect(left.enumerated().filter { $0.element == pattern($0.offset) }.count < count / 8)
    }
}

@Suite("Reading a secret")
struct SecretReadingTests {
    @Test(
        "removes only one newline at the end",
        arguments: [
            ("token\n", "token"), ("token\r\n", "token"), ("token", "token"), ("token\n\n", "token\n"),
            (" token ", " token "), ("\n", ""), ("\r\n", ""), ("", ""), ("a\rb\r", "a\rb\r"),
        ]
    )
    func newline(content: String, expected: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(content, to: "token")
        #expect(try Secret.read(file: path).reveal() == expected)
    }

    @Test("accepts content up to the limit, newline included")
    func limit() throws {
        let folder = try TemporaryFolder()
        #expect(try Secret.read(file: folder.write("12345678", to: "fits"), limit: 8).reveal() == "12345678")
        let path = try folder.write("12345678\n", to: "long")
        let error = #expect(throws: FileError.self) { try Secret.read(file: path, limit: 8) }
        #expect("\(try #require(error))" == "\(path) is longer than the 8 bytes that a secret can have")
    }

    @Test("names the file that is missing or is a directory")
    func unreadable() throws {
        let folder = try TemporaryFolder()
        let missing = #expect(throws: FileError.self) { try Secret.read(file: folder.file("none")) }
        #expect(
            "\(try #require(missing))"
                == "\(folder.file("none")) cannot be read: open failed: No such file or directory"
        )
        let directory = #expect(throws: FileError.self) { try Secret.read(file: folder.path) }
        #expect("\(try #require(directory))" == "\(folder.path) cannot be read: read failed: Is a directory")
    }

    @Test("reads a pipe in pieces", .timeLimit(.minutes(10)))
    func pipe() throws {
        let pipe = Pipe()
        // Both pieces fit into the pipe's buffer, so a second thread is not needed.
        try pipe.fileHandleForWriting.write(contentsOf: Data("first ".utf8))
        try pipe.fileHandleForWriting.write(contentsOf: Data("second\n".utf8))
        try pipe.fileHandleForWriting.close()
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        #expect(try Secret.read(descriptor: descriptor).reveal() == "first second")
        #expect(try Secret.read(descriptor: descriptor).isEmpty, "the descriptor stays open")
    }

    @Test("names the descriptor that is not open")
    func closedDescriptor() throws {
        let error = #expect(throws: FileError.self) { try Secret.read(descriptor: -1) }
        #expect("\(try #require(error))" == "descriptor -1 cannot be read: read failed: Bad file descriptor")
    }
}
