import Testing

@testable import RefreshWorker

@Suite("A configuration file")
struct EnvironmentFileTests {
    /// The rows go through the states of systemd's parser, `parse_env_file_internal`.
    @Test(
        "parses a value as systemd does",
        arguments: [
            ("A=plain", "plain"),
            ("A=", ""),
            ("  A  =  blanks around  ", "blanks around"),
            ("A=two  blanks", "two  blanks"),
            ("A=a # b", "a # b"),
            ("A=a=b", "a=b"),
            ("A='single'", "single"),
            ("A=' kept '", " kept "),
            ("A='no \\n escape \\'", "no \\n escape \\"),
            ("A=\"double\"", "double"),
            ("A=\"a \\\" b\"", "a \" b"),
            ("A=\"a \\\\ b\"", "a \\ b"),
            ("A=\"\\$HOME \\`x\\`\"", "$HOME `x`"),
            ("A=\"\\n stays\"", "\\n stays"),
            ("A=\"one\\\ntwo\"", "onetwo"),
            ("A=one\\\ntwo", "onetwo"),
            ("A=one \\\ntwo", "one two"),
            ("A=one\\\r\ntwo", "onetwo"),
            ("A=a\\ ", "a "),
            ("A=a\\b", "ab"),
            ("A=\"a\"'b'", "ab"),
            ("A=\"a\" 'b'", "ab"),
            ("A='a' b ", "ab"),
            ("A=it's", "it's"),
            ("A=\"line\nbreak\"", "line\nbreak"),
            ("A=x\r\n", "x"),
            ("A=ü", "ü"),
            ("\u{feff}A=x", "x"),
            ("A=x\\", "x"),
        ]
    )
    func readsValue(text: String, value: String) {
        let file = EnvironmentFile(parsing: Array(text.utf8))
        #expect(file.mistakes.isEmpty)
        #expect(file.entries.map(\.key) == ["A"])
        #expect(file.entries.first?.value == value)
    }

    @Test("skips comments and empty lines and knows each key's line")
    func countsLines() {
        let text = """
            # a comment = not a key
            ; another

              # indented, with a backslash \\
            FIRST=1
            JOINED=a\\
            b
            QUOTED='a
            b'
            LAST=2
            """
        let file = EnvironmentFile(parsing: Array(text.utf8))
        #expect(file.mistakes.isEmpty)
        #expect(file.entries.map(\.key) == ["FIRST", "JOINED", "QUOTED", "LAST"])
        #expect(file.entries.map(\.line) == [5, 6, 8, 10])
    }

    @Test("counts a line end of any system once", arguments: ["\n", "\r\n", "\r"])
    func countsLineEnds(lineEnd: String) {
        let text = ["A=1", "", "B=2"].joined(separator: lineEnd)
        #expect(EnvironmentFile(parsing: Array(text.utf8)).entries.map(\.line) == [1, 3])
    }

    @Test(
        "reports mistakes that systemd would ignore silently",
        arguments: [
            ("A=1\nnonsense\nB=2", 2, "neither KEY=value nor a comment"),
            ("A=1\nB='open\nC=3", 2, "never closed"),
            ("A=\"open", 1, "never closed"),
            ("A=\"open \\", 1, "never closed"),
            ("\n =x", 2, "no key before ="),
        ]
    )
    func reportsMistake(text: String, line: Int, message: String) {
        let file = EnvironmentFile(parsing: Array(text.utf8))
        #expect(file.mistakes.map(\.line) == [line])
        #expect(file.mistakes.first?.message.contains(message) == true)
    }

    @Test("reports bytes that are not UTF-8")
    func reportsEncoding() {
        let file = EnvironmentFile(parsing: Array("A=".utf8) + [0xff, 0xfe])
        #expect(file.entries.isEmpty)
        #expect(file.mistakes.map(\.line) == [1] && file.mistakes.first?.message == "is not UTF-8 text")
    }

    @Test("is parsed to the end, whatever its bytes")
    func survivesNoise() {
        let seed = UInt64.random(in: .min ... .max)
        var state = seed
        let alphabet = Array("A=\"'\\ \n\r#;\t\u{0}é".utf8)
        for _ in 0..<2000 {
            var bytes: [UInt8] = []
            for _ in 0..<12 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes.append(alphabet[Int(state >> 33) % alphabet.count])
            }
            let file = EnvironmentFile(parsing: bytes)
            let lines = bytes.count { $0 == 10 || $0 == 13 } + 1
            let reported = file.entries.map(\.line) + file.mistakes.map(\.line)
            #expect(reported.allSatisfy { (1...lines).contains($0) }, "seed \(seed), bytes \(bytes)")
        }
    }
}
