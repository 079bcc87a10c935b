import Secrets
import Testing

@Suite("Hexadecimal")
struct HexadecimalTests {
    @Test("each byte is two lower-case digits, and they are read back")
    func roundTrip() {
        let bytes = (0...255).map { UInt8($0) }
        let text = Hexadecimal.encode(bytes)
        #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
        #expect(Hexadecimal.decode(text) == bytes)
    }

    @Test("any other spelling is refused", arguments: ["0", "0g", "AB", "0x", "é0", " 0"])
    func refused(text: String) {
        #expect(Hexadecimal.decode(text) == nil)
    }
}
