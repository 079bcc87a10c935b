import Testing

@testable import GoogleSandbox

@Suite("Parsing of input")
struct ParsingTests {
    @Test(
        "JSON is written as it was read",
        arguments: [
            "null", "true", "17", "-9223372036854775808", "1.5", #""a\"\\\n\u0001€""#, "[]", "{}",
            #"{"a":[1,{"b":null}],"c":"d"}"#,
        ]
    )
    func roundTrip(text: String) {
        #expect(OrderedJSON.parsed(Array(text.utf8))?.text == text)
    }

    @Test("Text that is not JSON is refused", arguments: ["", "{", #"{"a":}"#, "nul", "[1,]x"])
    func broken(text: String) {
        #expect(OrderedJSON.parsed(Array(text.utf8)) == nil)
    }

    @Test("The command line is parsed")
    func arguments() throws {
        let arguments = try SandboxArguments(["--port", "0", "--quiet"])
        #expect(arguments.port == 0)
        #expect(arguments.isQuiet)
        #expect(try SandboxArguments([]).port == 8099)
        #expect(try SandboxArguments(["--help"]).wantsHelp)
    }

    @Test(
        "An invalid command line is refused",
        arguments: [["--port"], ["--port", "65536"], ["--prot"], ["8099"]]
    )
    func badArguments(words: [String]) {
        #expect(throws: ControlError.self) { try SandboxArguments(words) }
    }
}
