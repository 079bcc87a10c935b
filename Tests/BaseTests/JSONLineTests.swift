import Foundation
import Testing

@testable import Base

@Suite("A JSON line")
struct JSONLineTests {
    @Test("keeps its fields in the order given")
    func order() {
        var line = JSONLine()
        line.field("text", "a")
        line.field("whole", Int64.min)
        line.field("part", 0.5)
        line.field("yes", true)
        line.null("nothing")
        line.milliseconds("span", .milliseconds(-1500))
        line.object("inner") { inner in
            inner.field("x", 1)
            inner.object("empty") { _ in }
        }
        line.array("list") { list in
            list.element("a")
            list.element("b")
            list.object { $0.field("x", 3) }
        }
        line.array("none") { _ in }
        let expected = """
            {"text":"a","whole":-9223372036854775808,"part":0.5,"yes":true,"nothing":null,"span":-1500,\
            "inner":{"x":1,"empty":{}},"list":["a","b",{"x":3}],"none":[]}
            """
        #expect(line.text == expected)
    }

    @Test(
        "writes an id as sixteen digits",
        arguments: [(0, "0000000000000000"), (0x1f, "000000000000001f"), (.max, "ffffffffffffffff")]
    )
    func hexadecimal(value: UInt64, digits: String) {
        var line = JSONLine()
        line.hexadecimal("id", value)
        #expect(line.text == "{\"id\":\"\(digits)\"}")
    }

    @Test("can be used again without its last fields")
    func removal() {
        var line = JSONLine()
        let empty = line.length
        line.field("a", 1)
        let first = line.length
        line.field("b", "\n")
        line.removeFields(after: first)
        line.field("c", 3)
        #expect(line.text == #"{"a":1,"c":3}"#)
        line.removeFields(after: empty)
        line.field("d", 4)
        #expect(line.text == #"{"d":4}"#)
    }

    @Test("without fields is an empty object")
    func empty() {
        #expect(JSONLine().text == "{}")
    }

    @Test(
        "escapes what breaks a line, a string or a terminal",
        arguments: [
            ("\"\\", #"\"\\"#), ("\n\r\t", #"\n\r\t"#), ("\u{0}\u{1b}\u{7f}", #"\u0000\u001b\u007f"#),
            ("\u{85}\u{9b}", #"\u0085\u009b"#), ("\u{2028}\u{2029}", #"\u2028\u2029"#),
            ("\u{202e}\u{2066}", #"\u202e\u2066"#), ("/é😀\u{a0}", "/é😀\u{a0}"),
            ("plain\u{1b}plain", #"plain\u001bplain"#), ("plain\"", #"plain\""#),
        ]
    )
    func escapes(value: String, expected: String) {
        var line = JSONLine()
        line.field("v", value)
        #expect(line.text == "{\"v\":\"\(expected)\"}")
    }

    @Test("escapes keys too")
    func keys() {
        var line = JSONLine()
        line.field("a\"b", 1)
        #expect(line.text == #"{"a\"b":1}"#)
    }

    @Test("writes null for a number that JSON cannot represent", arguments: [Double.infinity, -.infinity, .nan])
    func numbers(value: Double) {
        var line = JSONLine()
        line.field("v", value)
        #expect(line.text == #"{"v":null}"#)
    }

    @Test("shortens a text at whole characters and marks the cut")
    func caps() {
        var line = JSONLine()
        line.text("fits", "abcdefgh", limit: 8)
        line.text("cut", "abcdefghi", limit: 8)
        line.text("split", "aé😀😀😀", limit: 8)
        #expect(line.text == #"{"fits":"abcdefgh","cut":"abcde…","split":"aé…"}"#)
    }

    @Test("holds any text, and parses back to it", arguments: [UInt64.random(in: .min ... .max)])
    func fuzz(seed: UInt64) throws {
        let random = SeededRandom(seed: seed)
        for _ in 0..<2_000 {
            let bytes = (0..<(random.nextBits() % 40)).map { _ in
                // Half of the bytes are controls, quotes or lead bytes of characters that must be escaped.
                let pick = random.nextBits()
                let awkward: [UInt8] = [0, 9, 10, 13, 27, 34, 92, 0x7f, 0xc2, 0x85, 0xe2, 0x80, 0xa8, 0xf0, 0xff]
                return pick & 1 == 0 ? UInt8(truncatingIfNeeded: pick >> 8) : awkward[Int(pick >> 8) % awkward.count]
            }
            let value = String(decoding: bytes, as: UTF8.self)
            var line = JSONLine()
            line.field("v", value)
            let output = line.bytes
            #expect(output.allSatisfy { $0 >= 0x20 && $0 != 0x7f }, "seed \(seed)")
            let parsed = try JSONSerialization.jsonObject(with: Data(output)) as? [String: String]
            #expect(parsed?["v"].map { Array($0.utf8) } == Array(value.utf8), "seed \(seed)")
        }
    }

    @Test("never exceeds its cap, whatever the text", arguments: [UInt64.random(in: .min ... .max)])
    func capFuzz(seed: UInt64) throws {
        let random = SeededRandom(seed: seed)
        let alphabet: [Character] = ["a", "é", "…", "😀", "e\u{301}", "👨‍👩‍👧"]
        for _ in 0..<2_000 {
            let length = Int(random.nextBits() % 30)
            let value = String((0..<length).map { _ in alphabet[Int(random.nextBits() % UInt64(alphabet.count))] })
            let limit = 3 + Int(random.nextBits() % 30)
            var line = JSONLine()
            line.text("v", value, limit: limit)
            let parsed = try JSONSerialization.jsonObject(with: Data(line.bytes)) as? [String: String]
            let shown = try #require(parsed?["v"])
            #expect(shown.utf8.count <= limit, "seed \(seed)")
            #expect(shown.utf8.elementsEqual(value.utf8) || shown.unicodeScalars.last == "…", "seed \(seed)")
        }
    }
}
