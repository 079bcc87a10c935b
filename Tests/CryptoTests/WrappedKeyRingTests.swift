import Base
import Foundation
import Synchronization
import Testing

@testable import Crypto

@Suite("A wrapped key file")
struct WrappedKeyRingTests {
    /// Adds a letter before the text, which its opposite removes, and fails as a test wants.
    final class Letters: KeyRingWrapping {
        enum Fault: Equatable {
            case failsToWrap
            case failsToUnwrap
            /// As a KMS does that got another file.
            case opensAnotherRing
            case losesTheEnd
            case wrapsNothing
        }

        let fault = Mutex<Fault?>(nil)
        /// Called while the program runs.
        let meanwhile = Mutex<(@Sendable () -> Void)?>(nil)
        private let other = "0000000f \(KeyText.counting)\n"

        func unwrap(_ content: Secret?) throws(FileError) -> Secret {
            if fault.withLock({ $0 }) == .failsToUnwrap { throw FileError("no", .program) }
            if fault.withLock({ $0 }) == .opensAnotherRing { return Secret(other) }
            guard let text = content?.suffix(after: "x") else { throw FileError("not wrapped", .program) }
            return text
        }

        func wrap(_ text: Secret) throws(FileError) -> Secret {
            meanwhile.withLock { $0 }?()
            switch fault.withLock({ $0 }) {
            case .failsToWrap: throw FileError("no", .program)
            case .losesTheEnd: return Secret("x" + text.reveal().dropLast(20))
            case .wrapsNothing: return Secret("")
            default: return Secret("x" + text.reveal())
            }
        }
    }

    @Test("holds each change of the ring in its wrapped form only")
    func changes() throws {
        let folder = try TemporaryFolder()
        let (path, letters) = (folder.file("keys"), Letters())
        let first = try KeyRingFile.generate(path: path, wrapping: letters)
        #expect(try folder.mode(of: "keys") == 0o600)
        let second = try KeyRingFile.addPending(path: path, wrapping: letters)
        try KeyRingFile.promote(second, path: path, wrapping: letters)
        let binding = try KeyRingFile.addBinding(path: path, wrapping: letters)
        try KeyRingFile.retire(first, at: Timestamp(secondsSince1970: 1_800_000_000), path: path, wrapping: letters)
        #expect(try folder.text().hasPrefix("x#"))
        let ring = try KeyRingFile.load(path: path, wrapping: letters)
        #expect(ring.keyIDs == [second, first, binding])
        try KeyRingFile.remove(first, path: path, wrapping: letters)
        #expect(try KeyRingFile.load(path: path, wrapping: letters).keyIDs == [second, binding])
        #expect(throws: FileError.self, "it is not plain text") { try KeyRingFile.load(path: path) }
        #expect(try folder.names == ["keys"])
    }

    @Test(
        "stays as it is, byte by byte, if its new content would not open to the new ring",
        arguments: [
            Letters.Fault.failsToWrap, .failsToUnwrap, .opensAnotherRing, .losesTheEnd, .wrapsNothing,
        ]
    )
    func badWrap(fault: Letters.Fault) throws {
        let folder = try TemporaryFolder()
        let (path, letters) = (folder.file("keys"), Letters())
        _ = try KeyRingFile.generate(path: path, wrapping: letters)
        let before = try folder.text()
        letters.fault.withLock { $0 = fault }
        #expect(throws: FileError.self) { try KeyRingFile.addPending(path: path, wrapping: letters) }
        #expect(throws: FileError.self) { try KeyRingFile.checkWrapping(path: path, wrapping: letters) }
        #expect(throws: FileError.self, "nor is one made") {
            try KeyRingFile.generate(path: folder.file("new"), wrapping: letters)
        }
        #expect(try folder.text() == before)
        #expect(try folder.names == ["keys"])
    }

    @Test("is not replaced if another program has changed it while the programs ran")
    func changedMeanwhile() throws {
        let folder = try TemporaryFolder()
        let (path, letters) = (folder.file("keys"), Letters())
        _ = try KeyRingFile.generate(path: path, wrapping: letters)
        let installed = "x0000000f \(KeyText.counting)\n"
        letters.meanwhile.withLock { $0 = { try? installed.write(toFile: path, atomically: true, encoding: .utf8) } }
        let error = #expect(throws: FileError.self) { try KeyRingFile.addPending(path: path, wrapping: letters) }
        #expect(error?.description.contains("changed by another program") == true)
        #expect(try folder.text() == installed)
    }

    @Test("is refused if it belongs to another user than this one or root", .enabled(if: geteuid() == 0))
    func foreignOwner() throws {
        let folder = try TemporaryFolder()
        let (path, letters) = (folder.file("keys"), Letters())
        _ = try KeyRingFile.generate(path: path, wrapping: letters)
        try #require(chown(path, 4321, 4321) == 0)
        let error = #expect(throws: FileError.self) { try KeyRingFile.load(path: path, wrapping: letters) }
        #expect(error?.description.contains("belongs to user 4321") == true)
    }

    @Test("can be opened by a program that prints Base64")
    func base64() throws {
        struct Printed: KeyRingWrapping {
            let text: String

            func unwrap(_ content: Secret?) throws(FileError) -> Secret { Secret(text) }
            func wrap(_ text: Secret) throws(FileError) -> Secret { text }
        }
        let folder = try TemporaryFolder()
        let ring = "# comment\n0000000a \(KeyText.counting)\n"
        for end in ["", "\n", "\r\n"] {
            let printed = Printed(text: Base64.encode(Array(ring.utf8)) + end)
            #expect(try KeyRingFile.load(path: folder.file("keys"), wrapping: printed).keyIDs.count == 1)
        }
        let encoded = Base64.encode(Array("no key ring".utf8))
        for text in ["", "\n", "no key ring", encoded, "0000000a \(KeyText.counting) x"] {
            let error = try #require(throws: FileError.self) {
                try KeyRingFile.load(path: folder.file("keys"), wrapping: Printed(text: text))
            }
            #expect(error.description.contains("opened by --key-command, but what that printed is no key ring"))
            #expect(!error.description.contains(KeyText.counting))
        }
    }

    @Test("can be readable by others, and is refused if they can change it")
    func mode() throws {
        let folder = try TemporaryFolder()
        let (path, letters) = (folder.file("keys"), Letters())
        _ = try KeyRingFile.generate(path: path, wrapping: letters)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        _ = try KeyRingFile.addPending(path: path, wrapping: letters)
        #expect(try folder.mode(of: "keys") == 0o644)
        try FileManager.default.setAttributes([.posixPermissions: 0o664], ofItemAtPath: path)
        let error = try #require(throws: FileError.self) { try KeyRingFile.load(path: path, wrapping: letters) }
        #expect(error.description.contains("can be changed by others (mode 664): run: chmod go-w"))
        #expect(throws: FileError.self) { try KeyRingFile.addPending(path: path, wrapping: letters) }
    }
}
