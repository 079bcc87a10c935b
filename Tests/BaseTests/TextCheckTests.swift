import Base
import Testing

@Suite("A text is")
struct TextCheckTests {
    @Test("a code", arguments: ["a", "http_503", "_", "0", String(repeating: "z", count: 64)])
    func code(text: String) {
        #expect(text.isLowerCaseCode)
    }

    @Test("not a code", arguments: ["", "A", "a b", "a-b", "é", "a\n", String(repeating: "z", count: 65)])
    func notCode(text: String) {
        #expect(!text.isLowerCaseCode)
    }

    @Test("an id", arguments: ["a", "A-1._", String(repeating: "Z", count: 64)])
    func plainID(text: String) {
        #expect(text.isPlainID)
    }

    @Test("not an id", arguments: ["", "a b", "a/b", "é", "a\n", String(repeating: "z", count: 65)])
    func notPlainID(text: String) {
        #expect(!text.isPlainID)
    }

    @Test("a number", arguments: ["0", "007", "18446744073709551616"])
    func number(text: String) {
        #expect(text.isDecimalNumber)
        #expect("n\(text)".dropFirst().isDecimalNumber)
    }

    @Test("not a number", arguments: ["", "-1", "+1", "1.0", " 1", "1 ", "٣", "½", "1e3"])
    func notNumber(text: String) {
        #expect(!text.isDecimalNumber)
    }
}
