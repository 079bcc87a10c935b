import Testing

@testable import Storage

@Suite("Text that PostgreSQL would refuse is stored in another form")
struct StoredTextTests {
    @Test("Every text is read back", arguments: ["", "a", "a\u{0}b", "\u{1a}", "\u{1a}0", "\u{0}\u{1a}Z", "ä\u{0}"])
    func roundTrip(text: String) {
        var bytes: [UInt8] = []
        StoredText.write(text, to: &bytes)
        #expect(!bytes.contains(0))
        #expect(StoredText.read(bytes) == text)
    }

    @Test("Different texts stay different")
    func distinct() {
        let texts = ["\u{0}", "\u{1a}", "\u{1a}0", "\u{1a}Z", "0", "Z"]
        let stored = texts.map { text in
            var bytes: [UInt8] = []
            StoredText.write(text, to: &bytes)
            return bytes
        }
        #expect(Set(stored).count == texts.count)
    }
}
