import TestSupport
import Testing

@testable import HTTPServer

@Suite("A bearer token")
struct BearerTokenTests {
    private static func token(_ headers: [ServerRequest.Field]) -> BearerToken {
        BearerToken(of: ServerRequest(method: "GET", path: "/", headers: headers))
    }

    @Test("is the only word after the scheme", arguments: ["Bearer a.b", "bearer a.b", "BEARER\ta.b", " Bearer  a.b "])
    func present(value: String) {
        #expect(Self.token([("authorization", value)]) == .present("a.b"))
        #expect(Self.token([("authorization", value)]).text == "a.b")
    }

    @Test("is missing under another scheme", arguments: ["", "Bearer", "Bearer ", "Basic a.b", "Bearera.b", "a.b"])
    func missing(value: String) {
        #expect(Self.token([("Authorization", value)]) == .missing)
    }

    @Test("is missing without a header")
    func noHeader() {
        #expect(Self.token([("Accept", "Bearer a.b")]) == .missing)
    }

    @Test(
        "is malformed beside another one",
        arguments: ["Bearer a b", "Bearer a b c", "Bearer a,Bearer", "Bearer a,b"]
    )
    func malformed(value: String) {
        #expect(Self.token([("Authorization", value)]) == .malformed)
        #expect(Self.token([("Authorization", value)]).text == nil)
    }

    @Test("is malformed if two headers have one each")
    func twoHeaders() {
        #expect(Self.token([("Authorization", "Bearer a"), ("Authorization", "Bearer a")]) == .malformed)
    }
}
