import Crypto
import HTTPServer
import TestSupport
import Testing

@testable import Routes

@Suite("The permissions of a service")
struct ServiceTests {
    @Test("two encodings of an accented letter name two users, as in the store")
    func usersComparedByBytes() throws {
        let service = Service(
            name: "mailer",
            credentialHash: [],
            scopes: .everything,
            users: .only(["caf\u{e9}"])
        )
        let demands = try TokenVendingRequest([])
        #expect(service.refusal(forUser: "caf\u{e9}", demands: demands) == nil)
        #expect(service.refusal(forUser: "cafe\u{301}", demands: demands) != nil)
    }

    @Test("an entry for some connections gets no other of its users")
    func connections() throws {
        var service = Service(name: "mailer", credentialHash: [], scopes: .everything, users: .everything)
        service.connections = .only(["default"])
        let unnamed = try TokenVendingRequest([])
        #expect(service.refusal(forUser: "42", demands: unnamed) == nil)
        let named = try TokenVendingRequest([(name: "connection", value: "work")])
        #expect(service.refusal(forUser: "42", demands: named) == .forbiddenConnection)
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
