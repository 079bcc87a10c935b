import Base
import Testing

@Suite("The JSON parser")
struct JSONParserTests {
    @Test(
        "reads each kind of value",
        arguments: [
            ("null", JSONValue.null), (" true ", .bool(true)), ("false", .bool(false)), ("-0.5e+3", .number("-0.5e+3")),
            ("0", .number("0")), (#""a\n\"\\\/\u00e9\ud83d\ude00""#, .string("a\n\"\\/é😀")), ("[]", .array([])),
            ("[1, [2]]", .array([.number("1"), .array([.number("2")])])), ("{}", .object([:])),
            (#"{"a":1,"b":{"c":null},"a":2}"#, .object(["a": .number("2"), "b": .object(["c": .null])])),
            ("\u{FEFF}[1]", .array([.number("1")])),
        ]
    )
    func reads(text: String, value: JSONValue) throws {
        #expect(try JSONValue.parse(text.utf8) == value)
    }

    @Test(
        "refuses text that is not JSON",
        arguments: [
            "", " ", "nul", "01", "-", "-01", "1.", "1e", ".5", "+1", "\"", "\"\\x\"", "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"", "\"\\u12g4\"", "\"\u{1}\"", "[1,]", "[1", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}",
            "1 2", "{} x",
            "NaN", "'a'", " \u{FEFF}1", "\u{FEFF}", "1\u{FEFF}", "\u{FEFF}\u{FEFF}1",
            String(repeating: "[", count: 100_000),
        ]
    )
    func refuses(text: String) {
        #expect(throws: FormatError.self) { try JSONValue.parse(text.utf8) }
    }

    @Test("refuses bytes that are not UTF-8")
    func refusesBadBytes() {
        #expect(throws: FormatError.self) { try JSONValue.parse([0x22, 0xff, 0x22] as [UInt8]) }
    }

    @Test(
        "returns an integer only for whole numbers",
        arguments: [
            ("3600", Int64(3600)), ("3600.0", 3600), ("36e2", 3600), ("-1", -1), ("1.5", nil), ("1e400", nil),
            ("9e18", nil),
            ("9223372036854775807", .max), ("9223372036854775808", nil),
        ] as [(String, Int64?)]
    )
    func wholeNumbers(text: String, value: Int64?) {
        #expect(JSONValue.number(text).integer == value)
    }

    @Test(
        "returns the complete members of an object that is truncated, damaged or has trailing text",
        arguments: [
            ("", nil), ("[1]", nil), ("\"a\"", nil), ("{", [:]), ("{}", [:]), (#"{"a"#, [:]), (#"{"a":"b"#, [:]),
            (#"{"a":"b""#, ["a": .string("b")]), (#" {"a":"b","c":{"d":1"#, ["a": .string("b")]),
            (#"{"a":12"#, [:]), (#"{"a":12,"#, ["a": .number("12")]), (#"{"a":"b"} more"#, ["a": .string("b")]),
            (#"{"a":"b"}{"a":"c"}"#, ["a": .string("b")]), (#"{"a":true,"b":x"#, ["a": .bool(true)]),
            (#"{"a":"b" "c":1"#, ["a": .string("b")]), (#"{"a":"b","c":"\ud800"}"#, ["a": .string("b")]), ("{}}", [:]),
            (#"{"a":"b","c":"\u00"#, ["a": .string("b")]), (#"{"a":"b","c":tru"#, ["a": .string("b")]),
            ("\u{FEFF}{\"a\":\"b\"", ["a": .string("b")]),
        ] as [(String, [String: JSONValue]?)]
    )
    func partialObjects(text: String, members: [String: JSONValue]?) {
        #expect(JSONValue.partialObject(in: text.utf8)?.object == members)
    }

    private static let tooDeep = String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000)

    @Test(
        "leaves a value out that cannot be read, and continues where its end is certain",
        arguments: [
            (tooDeep, true), (#"{"b":\#(tooDeep),"c":"]}\"\\"}"#, true), (#""\ud800""#, true), ("\"\u{1}\"", true),
            ("NaN", true), ("+3", true), ("03", true), (#"[1,}"#, false), ("[1}", false), ("", false), ("'x'", false),
            ("[[[", false), ("tru e", false),
        ]
    )
    func skipsValues(value: String, continues: Bool) {
        let members = JSONValue.partialObject(in: #"{"a":"b","x":\#(value),"z":true}"#.utf8)?.object
        #expect(members == (continues ? ["a": .string("b"), "z": .bool(true)] : ["a": .string("b")]))
    }

    @Test("survives damaged texts", arguments: 0..<200 as Range<UInt64>)
    func survivesDamage(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        var bytes = Array(
            #"{"access_token":"ya29.a","expires_in":3599,"x":[true,null,{"y":"\u00e9\ud83d\ude00"}]}"#.utf8
        )
        for _ in 0..<(1 + Int(random.nextBits() % 6)) {
            bytes[Int(random.nextBits() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.nextBits())
        }
        bytes.removeLast(Int(random.nextBits() % 4))
        let outcome = Result { try JSONValue.parse(bytes) }
        if case .failure(let error) = outcome { #expect(error is FormatError, "seed \(seed)") }
    }
}
