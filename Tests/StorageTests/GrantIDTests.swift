import Testing

@testable import Storage

@Suite("The id of a grant")
struct GrantIDTests {
    @Test("is sixteen digits, and is parsed back", arguments: [0, 1, 0xabc, 0x0123_4567_89ab_cdef, Int64.max])
    func roundTrip(value: Int64) {
        let id = GrantID(rawValue: value)
        #expect(id.description.utf8.count == 16)
        #expect(GrantID(id.description) == id)
        #expect(GrantID(id.description.uppercased()) == id)
        var text = Array("id ".utf8)
        id.appendDigits(to: &text)
        #expect(text == Array("id \(id)".utf8))
        #expect(GrantID(digits: text[3...]) == id)
    }

    @Test("is written with leading zeros and in lower case")
    func form() {
        #expect(GrantID(rawValue: 0xabc).description == "0000000000000abc")
        #expect(GrantID(rawValue: .max).description == "7fffffffffffffff")
    }

    @Test(
        "has no other form",
        arguments: [
            "", "0", "000000000000abc", "00000000000000abc", "+000000000000abc", "-000000000000abc", "8000000000000000",
            "ffffffffffffffff", "000000000000 abc", "000000000000gabc", "0x00000000000abc", "00000000000000ä",
        ]
    )
    func refused(text: String) {
        #expect(GrantID(text) == nil)
    }
}
