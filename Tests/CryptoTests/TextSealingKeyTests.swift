import Crypto
import Testing

@Suite("A handle key")
struct TextSealingKeyTests {
    private let key = TextSealingKey(from: Secret("a secret"), owner: "mailer")

    @Test(
        "opens what it sealed, and gives equal texts equal bytes",
        arguments: ["", "u", "caf\u{e9}", String(repeating: "u", count: 32), String(repeating: "é", count: 500)]
    )
    func roundTrip(text: String) throws {
        let sealed = try key.seal(text)
        #expect(try key.open(sealed) == text)
        #expect(try key.seal(text) == sealed)
    }

    @Test("hides the text and its length")
    func hidden() throws {
        let texts = ["1", "42", "someone@example.com", String(repeating: "9", count: 32)]
        let sealed = try texts.map { try key.seal($0) }
        #expect(Set(sealed.map(\.count)) == [12 + 32 + 16])
        #expect(Set(sealed).count == texts.count)
        for (text, bytes) in zip(texts, sealed) where text.utf8.count > 2 {
            #expect(!String(decoding: bytes, as: UTF8.self).contains(text))
        }
    }

    @Test("differs for each secret and each owner")
    func others() throws {
        let sealed = try key.seal("u")
        for other in [
            TextSealingKey(from: Secret("another secret"), owner: "mailer"),
            TextSealingKey(from: Secret("a secret"), owner: "b"),
        ] {
            #expect(try other.open(sealed) == nil)
            #expect(try other.seal("u") != sealed)
        }
    }

    @Test("refuses every altered byte and every shorter text")
    func altered() throws {
        let sealed = try key.seal("u")
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(try key.open(changed) == nil)
            #expect(try key.open(Array(sealed[..<index])) == nil)
        }
        #expect(try key.open(sealed + [0]) == nil)
    }
}
