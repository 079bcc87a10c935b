import TestSupport
import Testing

@testable import HTTPServer

@Suite("Targets and forms are decoded")
struct ParsingTests {
    struct Target: Sendable, CustomTestStringConvertible {
        let raw: String
        let path: String
        let query: [[String]]
        var testDescription: String { raw }
    }

    @Test(
        "A target gives its path and query",
        arguments: [
            Target(raw: "/", path: "/", query: []),
            Target(raw: "/a/b?x=1&y=2", path: "/a/b", query: [["x", "1"], ["y", "2"]]),
            Target(raw: "/a%2Fb%20c+d?q=a+b%2B", path: "/a/b c+d", query: [["q", "a b+"]]),
            Target(raw: "/token%00x", path: "/token\0x", query: []),
            Target(raw: "/a?", path: "/a", query: []),
            Target(raw: "/a?x", path: "/a", query: [["x", ""]]),
            Target(raw: "/a?x=1?y=2", path: "/a", query: [["x", "1?y=2"]]),
            Target(raw: "/a?&&=v&x==", path: "/a", query: [["", "v"], ["x", "="]]),
            Target(raw: "/100%", path: "/100%", query: []),
            Target(raw: "/%zz%4", path: "/%zz%4", query: []),
            Target(raw: "/%e2%82%ac", path: "/€", query: []),
            Target(raw: "/%ff", path: "/\u{FFFD}", query: []),
            Target(raw: "http://example.com/a?b=c", path: "/a", query: [["b", "c"]]),
            Target(raw: "HTTPS://example.com/a", path: "/a", query: []),
            Target(raw: "http://example.com", path: "/", query: []),
            Target(raw: "http://example.com?b=c", path: "/", query: [["b", "c"]]),
        ]
    )
    func target(_ row: Target) {
        let target = RequestTarget(Array(row.raw.utf8))
        #expect(target.isPath)
        #expect(target.path == row.path)
        #expect(target.query.map { [$0.name, $0.value] } == row.query)
    }

    @Test("A control character does not stand for a sign of the scheme")
    func controlInScheme() {
        #expect(!RequestTarget(Array("http\u{1a}\u{0f}\u{0f}x/v1".utf8)).isPath)
    }

    @Test("A form's fields keep their order, and their plus signs are spaces")
    func form() {
        let request = ServerRequest(method: "POST", path: "/", body: Array("b=1%2F%2F0&a=x+y&b=&lonely".utf8))
        #expect(request.form.map(\.name) == ["b", "a", "b", "lonely"])
        #expect(request.form.map(\.value) == ["1//0", "x y", "", ""])
    }

    @Test("A header is found whatever its case")
    func header() {
        let request = ServerRequest(
            method: "GET",
            path: "/",
            headers: [("AUTHORIZATION", "first"), ("authorization", "2")]
        )
        #expect(request.header("Authorization") == "first")
        #expect(request.header("accept") == nil)
    }
}
