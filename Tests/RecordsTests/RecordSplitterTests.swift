import Base
import Testing

@testable import Records

@Suite("Splitting an import into records")
struct RecordSplitterTests {
    private func split(_ text: String, pieces: Int = 1 << 20) -> [RecordSplitter.Record] {
        var splitter = RecordSplitter()
        var records: [RecordSplitter.Record] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            records += splitter.feed(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
        }
        return records + splitter.finish()
    }

    /// Returns the line number of each record with its text, or its kind if it is not an object.
    private func summary(_ records: [RecordSplitter.Record]) -> [String] {
        records.map { record in
            switch record.content {
            case .text(let text): "\(record.line) \(String(decoding: text, as: UTF8.self))"
            case let other: "\(record.line) \(other)"
            }
        }
    }

    static let splittings: [(String, [String])] = [
        ("", []),
        ("\n \r\n", []),
        ("{\"a\":1}\n{\"b\":2}\n", ["1 {\"a\":1}", "2 {\"b\":2}"]),
        ("{\"a\":1}\r\n\r\n  {\"b\":2}", ["1 {\"a\":1}", "3 {\"b\":2}"]),
        ("\u{feff}{\"a\":1}", ["1 {\"a\":1}"]),
        // Pretty-printed, alone and in sequence.
        ("\n{\n  \"a\": [\n    {\n    }\n  ]\n}\n", ["2 {\n  \"a\": [\n    {\n    }\n  ]\n}"]),
        ("{\n\"a\": 1\n}\n{\n\"b\": 2\n}", ["1 {\n\"a\": 1\n}", "4 {\n\"b\": 2\n}"]),
        // An array around them.
        ("[{\"a\":1},{\"b\":2}]", ["1 {\"a\":1}", "1 {\"b\":2}"]),
        ("[\n{\"a\":1},\n{\"b\":\n2}\n]\n", ["2 {\"a\":1}", "3 {\"b\":\n2}"]),
        ("[]", []),
        ("[1, \"x,]\", {\"a\":1}]", ["1 notAnObject", "1 notAnObject", "1 {\"a\":1}"]),
        ("[{\"a\":1},\n", ["1 {\"a\":1}", "2 unclosedArray"]),
        // Brackets and quotes in strings.
        (#"{"a":"}\"{"}"#, [#"1 {"a":"}\"{"}"#]),
        // A broken line does not lose the good one after it.
        ("{\"a\":\n{\"b\":2}", ["1 {\"a\":", "2 {\"b\":2}"]),
        ("{\"a\":\"x\n{\"b\":2}", ["1 {\"a\":\"x", "2 {\"b\":2}"]),
        ("{\"a\":1\nnull\n{\"b\":2}", ["1 {\"a\":1", "2 notAnObject", "3 {\"b\":2}"]),
        ("{\"a\":1,\n  {\"b\":2}", ["1 {\"a\":1,", "2 {\"b\":2}"]),
        ("{\"a\":[1,\n{\"b\":2}", ["1 {\"a\":[1,", "2 {\"b\":2}"]),
        ("{\"a\":1}}\n{\"b\":2}", ["1 {\"a\":1}}", "2 {\"b\":2}"]),
        ("]\n[1]\n\"x\n{\"b\":2}", ["1 notAnObject", "2 notAnObject", "3 notAnObject", "4 {\"b\":2}"]),
        ("{\"a\":1", ["1 {\"a\":1"]),
    ]

    @Test(
        "finds the records and their line numbers, wherever the chunks end",
        arguments: Self.splittings
    )
    func finds(text: String, expected: [String]) {
        for pieces in [1, 2, 3, 7, 1000] {
            #expect(summary(split(text, pieces: pieces)) == expected)
        }
    }

    @Test("skips the rest of a line that is too long, and continues after it")
    func tooLong() {
        let long = "{\"user_id\":\"" + String(repeating: "x", count: RecordSplitter.maximumRecordLength) + "\"}"
        let text = "{\"a\":1}\n\(long)\n{\"b\":2}\n"
        #expect(summary(split(text)) == ["1 {\"a\":1}", "2 tooLong", "3 {\"b\":2}"])
    }

    @Test("accepts a record of exactly the longest length")
    func longest() {
        let text = "{\"a\":\"" + String(repeating: "x", count: RecordSplitter.maximumRecordLength - 8) + "\"}"
        #expect(text.utf8.count == RecordSplitter.maximumRecordLength)
        #expect(split(text).map(\.content) == [.text(Array(text.utf8))])
    }

    @Test("refuses a line that opens too many brackets")
    func tooDeep() {
        let text = "{\"a\":" + String(repeating: "[", count: 100_000) + "\n{\"b\":2}"
        #expect(summary(split(text)) == ["1 tooDeep", "2 {\"b\":2}"])
    }

    @Test(
        "names the place of what is not JSON, and never shows a value",
        arguments: [
            (#"{"user_id":"u","access_token":"SECRET"#, "a string is not closed at byte"),
            ("{\n\"user_id\": \"u\",\n\"access_token\": SECRET\n}", "not a JSON value at line 3, byte 17"),
        ]
    )
    func notJSON(text: String, problem: String) {
        let record = RecordSplitter.Record(line: 1, content: .text(Array(text.utf8)))
        let error = #expect(throws: InputError.self) { try record.members() }
        #expect(error?.message.hasPrefix("not JSON: \(problem)") == true)
        #expect(error?.message.contains("SECRET") == false)
    }

    @Test("finds each valid line among random bytes", arguments: [1, 2, 3, 4, 5, 6, 7, 8])
    func fuzz(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        let alphabet = Array("{}[]\",:\\ \t1tnax\u{e9}".utf8)
        var text: [UInt8] = []
        var good: [Int] = []
        for number in 1...500 {
            if random.nextBits() % 3 == 0 {
                text += Array("{\"user_id\":\"\(number)\"}".utf8)
                good.append(number)
            } else {
                // An array at the very beginning has other rules.
                text += number == 1 ? [UInt8(ascii: "x")] : []
                for _ in 0..<random.nextBits() % 30 {
                    text.append(alphabet[Int(random.nextBits() % UInt64(alphabet.count))])
                }
            }
            text.append(UInt8(ascii: "\n"))
        }
        var splitter = RecordSplitter()
        let records = splitter.feed(text) + splitter.finish()
        let found = records.filter { record in
            record.content == .text(Array("{\"user_id\":\"\(record.line)\"}".utf8))
        }
        #expect(found.map(\.line) == good, "seed \(seed)")
    }
}
