import Base
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

    @Test("reads single digits in either case")
    func digits() {
        #expect("0123456789abcdefABCDEF".utf8.map(Hexadecimal.value(of:)) == (0...15).map { $0 } + (10...15).map { $0 })
        for byte in [0x10, 0x2f, 0x3a, 0x40, 0x47, 0x60, 0x67, 0xff] as [UInt8] {
            #expect(Hexadecimal.value(of: byte) == nil)
        }
    }

    @Test("refuses any other text", arguments: ["0", "0g", "AB", "0x", "é0", " 0"])
    func refused(text: String) {
        #expect(Hexadecimal.decode(text) == nil)
    }
}
