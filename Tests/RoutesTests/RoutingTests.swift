import Storage
import TestSupport
import Testing

@testable import Routes

@Suite("Requests without a route")
struct RoutingTests {
    @Test(
        "get PayPulse's form of errors, except under /api/",
        arguments: ["/", "/v1/nothing", "/v1/user/me/", "/apiary"]
    )
    func unknownPath(_ path: String) async throws {
        let response = try await AccountFixture().send("GET", path)
        #expect(response.statusAndCode == "404 NOT_FOUND")
        #expect(response.header("Cache-Control") == "no-store")
    }

    @Test("get the sessions' form of errors under /api/")
    func otherUnknownPath() async throws {
        let response = try await AccountFixture().send("GET", "/api/auth/nothing")
        #expect(response.statusAndDetail == "404 Not Found")
        #expect(response.header("X-Content-Type-Options") == "nosniff")
    }

    @Test("get the allowed methods if only the method is wrong")
    func wrongMethod() async throws {
        let fixture = try AccountFixture()
        let response = try await fixture.send("POST", "/v1/user/me")
        #expect(response.statusAndCode == "405 METHOD_NOT_ALLOWED")
        #expect(response.header("Allow") == "DELETE, GET, HEAD")
        let alias = try await fixture.send("GET", "/v1/delete/me")
        #expect(alias.statusAndCode == "405 METHOD_NOT_ALLOWED")
        #expect(alias.header("Allow") == "DELETE")
        let other = try await fixture.send("GET", "/api/auth/refresh")
        #expect(other.statusAndDetail == "405 Method Not Allowed")
        #expect(other.header("Allow") == "POST")
    }

    @Test("HEAD gets the status of GET")
    func head() async throws {
        #expect(try await AccountFixture().send("HEAD", "/api/auth/status").status == 200)
    }

    @Test("the client does not see the reason of a store failure")
    func failingStore() async throws {
        let fixture = try AccountFixture()
        await fixture.store.close()
        let response = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        #expect(response.statusAndCode == "500 INTERNAL_SERVER_ERROR")
        let other = try await fixture.send("GET", "/api/auth/me", token: fixture.token(ofUser: "42"))
        #expect(other.statusAndDetail == "500 Internal Server Error")
        #expect(!response.text.contains("closed") && !other.text.contains("closed"))
    }
}
