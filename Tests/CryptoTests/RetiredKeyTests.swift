import Base
import Crypto
import Testing

@Suite("A retired key")
struct RetiredKeyTests {
    private static let context = SealContext(owner: 7, column: "access_token")
    private static let now = Timestamp(secondsSince1970: 1_795_342_272)

    @Test("opens what it sealed and seals nothing")
    func opens() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let old = try KeyRingFile.generate(path: path)
        let sealed = try KeyRingFile.load(path: path).seal(Secret("token"), for: Self.context)
        let new = try KeyRingFile.addPending(path: path)
        try KeyRingFile.promote(new, path: path)
        try KeyRingFile.retire(old, at: Self.now, path: path)
        let ring = try KeyRingFile.load(path: path)
        #expect(ring.keys.map(\.role) == [.active, .retired(since: Self.now)])
        #expect(ring.sealingKeyID == new)
        #expect(try ring.open(sealed, for: Self.context) == Secret("token"))
    }

    @Test("never seals, even as the first line of a file that was copied")
    func firstLine() throws {
        let folder = try TemporaryFolder()
        let text = "0000000a \(KeyText.zeroes) retired 1795342272\n0000000b \(KeyText.counting)\n"
        #expect(try KeyRingFile.load(path: folder.write(text)).sealingKeyID == KeyID("0000000b"))
        let alone = try folder.write("0000000a \(KeyText.zeroes) retired 1795342272\n", to: "alone")
        #expect(throws: fault(alone, .noSealingKey)) { try KeyRingFile.load(path: alone) }
    }

    @Test("keeps its time when it is retired again, unless that is in the future")
    func again() throws {
        let folder = try TemporaryFolder()
        let text = "0000000b \(KeyText.counting)\n0000000a \(KeyText.zeroes) retired 1795342272\n"
        let path = try folder.write(text)
        let id = try #require(KeyID("0000000a"))
        try KeyRingFile.retire(id, at: Self.now + .seconds(100), path: path)
        #expect(try folder.text() == text)
        try KeyRingFile.retire(id, at: Self.now - .seconds(100), path: path)
        #expect(try KeyRingFile.load(path: path).keys.last?.role == .retired(since: Self.now - .seconds(100)))
    }

    @Test("cannot be the one that seals")
    func sealingKey() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let id = try KeyRingFile.generate(path: path)
        #expect(throws: fault(path, .sealingKey(id))) { try KeyRingFile.retire(id, at: Self.now, path: path) }
    }

    @Test(
        "has a valid time",
        arguments: ["retired", "retired soon", "retired 17953422720", "retried 1795342272"]
    )
    func badMark(mark: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0000000b \(KeyText.counting)\n0000000a \(KeyText.zeroes) \(mark)\n")
        #expect(throws: FileError.self) { try KeyRingFile.load(path: path) }
    }
}
