import Testing

@testable import GoogleSandbox

@Suite("Input is read")
struct ParsingTests {
    @Test(
        "JSON comes out as it went in",
        arguments: [
            "null", "true", "17", "-9223372036854775808", "1.5", #""a\"\\\n\u0001€""#, "[]", "{}",
            #"{"a":[1,{"b":null}],"c":"d"}"#,
        ]
    )
    func roundTrip(text: String) {
        #expect(OrderedJSON.parsed(Array(text.utf8))?.text == text)
    }

    @Test("What is no JSON is none", arguments: ["", "{", #"{"a":}"#, "nul", "[1,]x"])
    func broken(text: String) {
        #expect(OrderedJSON.parsed(Array(text.utf8)) == nil)
    }

    @Test("The command line is understood")
    func arguments() throws {
        let arguments = try Arguments(["--port", "0", "--quiet"])
        #expect(arguments.port == 0)
        #expect(arguments.isQuiet)
        #expect(try Arguments([]).port == 8099)
        #expect(try Arguments(["--help"]).wantsHelp)
    }

    @Test(
        "A command line that makes no sense is refused",
        arguments: [["--port"], ["--port", "65536"], ["--prot"], ["8099"]]
    )
    func badArguments(words: [String]) {
        #expect(throws: ArgumentError.self) { try Arguments(words) }
    }
}
