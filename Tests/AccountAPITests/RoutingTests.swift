import Store
import Testing

@testable import AccountAPI

@Suite("Requests without a route")
struct RoutingTests {
    @Test(
        "are answered in PayPulse's form, except under /api/",
        arguments: ["/", "/v1/nothing", "/v1/user/me/", "/apiary"]
    )
    func unknownPath(_ path: String) async throws {
        let answer = try await AccountFixture().ask("GET", path)
        #expect(answer.payPulse == "404 NOT_FOUND")
        #expect(answer.header("Cache-Control") == "no-store")
    }

    @Test("are answered in ComprehensionEngine's form under /api/")
    func otherUnknownPath() async throws {
        let answer = try await AccountFixture().ask("GET", "/api/auth/nothing")
        #expect(answer.comprehension == "404 Not Found")
        #expect(answer.header("X-Content-Type-Options") == "nosniff")
    }

    @Test("get the allowed methods if only the method is wrong")
    func wrongMethod() async throws {
        let fixture = try AccountFixture()
        let answer = try await fixture.ask("POST", "/v1/user/me")
        #expect(answer.payPulse == "405 METHOD_NOT_ALLOWED")
        #expect(answer.header("Allow") == "DELETE, GET, HEAD")
        let alias = try await fixture.ask("GET", "/v1/delete/me")
        #expect(alias.payPulse == "405 METHOD_NOT_ALLOWED")
        #expect(alias.header("Allow") == "DELETE")
        let other = try await fixture.ask("GET", "/api/auth/refresh")
        #expect(other.comprehension == "405 Method Not Allowed")
        #expect(other.header("Allow") == "POST")
    }

    @Test("HEAD is answered like GET")
    func head() async throws {
        #expect(try await AccountFixture().ask("HEAD", "/api/auth/status").status == 200)
    }

    @Test("the client does not see the reason of a store failure")
    func failingStore() async throws {
        let fixture = try AccountFixture()
        await fixture.store.close()
        let answer = try await fixture.ask("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        #expect(answer.payPulse == "500 INTERNAL_SERVER_ERROR")
        let other = try await fixture.ask("GET", "/api/auth/me", token: fixture.token(ofUser: "42"))
        #expect(other.comprehension == "500 Internal Server Error")
        #expect(!answer.text.contains("closed") && !other.text.contains("closed"))
    }
}
