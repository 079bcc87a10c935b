import Store
import Testing

@testable import AccountAPI

@Suite("What no route answers")
struct RoutingTests {
    @Test("each family says it in its own words", arguments: ["/", "/v1/nothing", "/v1/user/me/", "/apiary"])
    func unknownPath(_ path: String) async throws {
        let answer = try await AccountWorld().ask("GET", path)
        #expect(answer.payPulse == "404 NOT_FOUND")
        #expect(answer.header("Cache-Control") == "no-store")
    }

    @Test("a path of the other family")
    func otherUnknownPath() async throws {
        let answer = try await AccountWorld().ask("GET", "/api/auth/nothing")
        #expect(answer.comprehension == "404 Not Found")
        #expect(answer.header("X-Content-Type-Options") == "nosniff")
    }

    @Test("another method is told which there are")
    func wrongMethod() async throws {
        let world = try AccountWorld()
        let answer = try await world.ask("POST", "/v1/user/me")
        #expect(answer.payPulse == "405 METHOD_NOT_ALLOWED")
        #expect(answer.header("Allow") == "DELETE, GET, HEAD")
        let alias = try await world.ask("GET", "/v1/delete/me")
        #expect(alias.payPulse == "405 METHOD_NOT_ALLOWED")
        #expect(alias.header("Allow") == "DELETE")
        let other = try await world.ask("GET", "/api/auth/refresh")
        #expect(other.comprehension == "405 Method Not Allowed")
        #expect(other.header("Allow") == "POST")
    }

    @Test("HEAD is answered as GET is")
    func head() async throws {
        #expect(try await AccountWorld().ask("HEAD", "/api/auth/status").status == 200)
    }

    @Test("a store that fails is no news for the client")
    func failingStore() async throws {
        let world = try AccountWorld()
        await world.store.close()
        let answer = try await world.ask("GET", "/v1/user/me", token: world.token(ofUser: "42"))
        #expect(answer.payPulse == "500 INTERNAL_SERVER_ERROR")
        let other = try await world.ask("GET", "/api/auth/me", token: world.token(ofUser: "42"))
        #expect(other.comprehension == "500 Internal Server Error")
        #expect(!answer.text.contains("closed") && !other.text.contains("closed"))
    }
}
