import Base
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Crypto

@Suite("Rotating in a key")
struct KeyRotationTests {
    private static let context = SealContext(owner: 7, column: "access_token")
    private static let token = Secret("ya29.token")

    @Test("keeps old and new values readable at each step")
    func steps() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let old = try KeyRingFile.generate(path: path)
        let sealedOld = try KeyRingFile.load(path: path).seal(Self.token, for: Self.context)

        let new = try KeyRingFile.addPending(path: path)
        let both = try KeyRingFile.load(path: path)
        #expect(both.keyIDs == [old, new])
        #expect(both.keys.map(\.role) == [.active, .pending])
        #expect(both.sealingKeyID == old)

        try KeyRingFile.promote(new, path: path)
        let promoted = try KeyRingFile.load(path: path)
        #expect(promoted.keyIDs == [new, old])
        #expect(promoted.keys.map(\.role) == [.active, .active])
        let sealedNew = try promoted.seal(Self.token, for: Self.context)
        #expect(sealedNew.keyID == new)
        #expect(try promoted.open(sealedOld, for: Self.context) == Self.token)
        #expect(try both.open(sealedNew, for: Self.context) == Self.token, "a worker that has not read the file again")

        let before = try folder.text()
        try KeyRingFile.promote(new, path: path)
        #expect(try folder.text() == before)

        try KeyRingFile.remove(old, path: path)
        let last = try KeyRingFile.load(path: path)
        #expect(last.keyIDs == [new])
        #expect(try last.open(sealedNew, for: Self.context) == Self.token)
        #expect(throws: CryptoError.unknownKey(old)) { try last.open(sealedOld, for: Self.context) }
        #expect(try folder.names == ["keys"])
    }

    @Test("never removes the key that seals or a missing key, and leaves the file unchanged")
    func refusals() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let sealing = try KeyRingFile.generate(path: path)
        _ = try KeyRingFile.addPending(path: path)
        let unknownID = try RingKey.random().id
        let before = try folder.text()
        #expect(throws: fault(path, .sealingKey(sealing))) { try KeyRingFile.remove(sealing, path: path) }
        #expect(throws: fault(path, .unknownKey(unknownID))) { try KeyRingFile.remove(unknownID, path: path) }
        #expect(throws: fault(path, .unknownKey(unknownID))) { try KeyRingFile.promote(unknownID, path: path) }
        #expect(try folder.text() == before)
        #expect(try folder.names == ["keys"])
    }

    @Test("keeps comments, the file's mode and a link to it")
    func keeps() throws {
        let folder = try TemporaryFolder()
        let text = "# ours\n\n0000000a \(KeyText.zeroes)\n# between\n0000000b \(KeyText.counting) pending\n"
        _ = try folder.write(text, to: "real", mode: 0o400)
        let link = folder.file("keys")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "real")
        try KeyRingFile.promote(#require(KeyID("0000000b")), path: link)
        #expect(
            try folder.text(of: "real")
                == "# ours\n\n0000000b \(KeyText.counting)\n0000000a \(KeyText.zeroes)\n# between\n"
        )
        #expect(try folder.mode(of: "real") == 0o400)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "real")
    }

    @Test("removes the temporary file of a crashed run")
    func leftover() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let first = try KeyRingFile.generate(path: path)
        _ = try folder.write("half a fi", to: "keys.new")
        let second = try KeyRingFile.addPending(path: path)
        #expect(try KeyRingFile.load(path: path).keyIDs == [first, second])
        #expect(try folder.names == ["keys"])
    }

    @Test("stops before the file grows beyond the limit for loading")
    func size() throws {
        let folder = try TemporaryFolder()
        let line = "0000000a \(KeyText.zeroes)\n"
        let text = "#" + String(repeating: "x", count: 65536 - line.utf8.count - 2) + "\n" + line
        let path = try folder.write(text)
        #expect(try KeyRingFile.load(path: path).keyIDs.count == 1)
        #expect(throws: fault(path, .tooLarge)) { try KeyRingFile.addPending(path: path) }
        #expect(try folder.text() == text)
    }

    @Test("by many processes at once loses no key", .timeLimit(.minutes(10)))
    func concurrent() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let first = try KeyRingFile.generate(path: path)
        let outcomes = Mutex<[Result<KeyID, any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 24) { _ in
            let outcome = Result<KeyID, any Error> {
                let id = try KeyRingFile.addPending(path: path)
                // A concurrent reader sees a complete file at any moment.
                guard try KeyRingFile.load(path: path).keyIDs.contains(id) else { throw CryptoError.unknownKey(id) }
                return id
            }
            outcomes.withLock { $0.append(outcome) }
        }
        let added = try outcomes.withLock { try $0.map { try $0.get() } }
        let ring = try KeyRingFile.load(path: path)
        #expect(ring.keyIDs.first == first)
        #expect(Set(ring.keyIDs) == Set(added + [first]))
        #expect(ring.keyIDs.count == 25)
        #expect(try folder.names == ["keys"])
    }

    @Test("lets exactly one of many concurrent creators succeed", .timeLimit(.minutes(10)))
    func concurrentGenerate() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let made = Mutex<[KeyID]>([])
        let refused = Mutex<[FileError]>([])
        DispatchQueue.concurrentPerform(iterations: 16) { _ in
            do throws(FileError) {
                let id = try KeyRingFile.generate(path: path)
                made.withLock { $0.append(id) }
            } catch {
                refused.withLock { $0.append(error) }
            }
        }
        #expect(try KeyRingFile.load(path: path).keyIDs == made.withLock { $0 })
        #expect(refused.withLock { $0 } == Array(repeating: fault(path, .alreadyExists), count: 15))
        #expect(try folder.names == ["keys"])
    }
}
