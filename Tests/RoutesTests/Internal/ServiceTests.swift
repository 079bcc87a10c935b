import Crypto
import HTTPServer
import TestSupport
import Testing

@testable import Routes

@Suite("The permissions of a service")
struct ServiceTests {
    @Test("two encodings of an accented letter name two users, as in the store")
    func usersComparedByBytes() {
        let service = Service(
            name: "mailer",
            credentialHash: [],
            scopes: .everything,
            users: .only(["caf\u{e9}"])
        )
        #expect(service.refusal(forUser: "caf\u{e9}", scopes: []) == nil)
        #expect(service.refusal(forUser: "cafe\u{301}", scopes: []) != nil)
    }

    @Test(
        "a request presents a bearer token, the password of HTTP Basic, or nothing",
        arguments: [
            ([], nil),
            (["Bearer rwc_1"], "rwc_1"),
            // "mailer:rwc_1"
            (["Basic bWFpbGVyOnJ3Y18x"], "rwc_1"),
            (["Basic bWFpbGVyOnJ3Y18x", "Bearer rwc_1"], nil),
            (["Basic ?"], nil),
            (["Negotiate rwc_1"], nil),
        ] as [([String], String?)]
    )
    func presentedCredential(authorization: [String], credential: String?) {
        let headers = authorization.map { (name: "Authorization", value: $0) }
        let request = ServerRequest(method: "GET", path: "/users", headers: headers)
        #expect(request.serviceCredential?.reveal() == credential)
    }
}
