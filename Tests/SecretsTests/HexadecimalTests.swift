import Secrets
import Testing

@Suite("Hexadecimal")
struct HexadecimalTests {
    @Test("encodes each byte as two lower-case digits, and decodes them")
    func roundTrip() {
        let bytes = (0...255).map { UInt8($0) }
        let text = Hexadecimal.encode(bytes)
        #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
        #expect(Hexadecimal.decode(text) == bytes)
    }

    @Test("refuses any other text", arguments: ["0", "0g", "AB", "0x", "é0", " 0"])
    func refused(text: String) {
        #expect(Hexadecimal.decode(text) == nil)
    }
}
