import Testing

@testable import HTTPServer

@Suite("The router finds each request's route")
struct RouterTests {
    private static let router = Router(
        [
            Route("GET", "/v1/grants/{user_id}/token") { .respond(.text("\($0.method) token of \($1["user_id"])")) },
            Route("POST", "/v1/grants/{user_id}/token") { _, values in .respond(.text("post \(values["user_id"])")) },
            Route(
                "POST",
                "/only",
                immediateHandler: { request, _ in request.body.isEmpty ? .respond(.text("immediate")) : nil }
            ) {
                _,
                _ in .respond(.text("handler"))
            },
            Route("POST", "/v1/things/new") { _, _ in .respond(.text("one more")) },
            Route("GET", "/v1/things/{id}") { _, values in .respond(.text("thing \(values["id"])")) },
            Route("GET", "/") { _, _ in .respond(.text("root")) },
        ],
        unknownPath: { _ in .text("unknown", status: 404) },
        wrongMethod: { request, _ in .text("not \(request.method)", status: 405) }
    )

    private func answer(_ method: String, _ target: String, body: String = "") async throws -> ServerResponse {
        let reply = await Self.router.answer(Self.request(method, target, body: body))
        guard case .respond(let response) = reply else { throw RawClient.NoConnection() }
        return response
    }

    private static func request(_ method: String, _ target: String, body: String = "") -> ServerRequest {
        ServerRequest(
            method: method,
            target: RequestTarget(Array(target.utf8)),
            headers: [],
            body: Array(body.utf8),
            peerAddress: "unix",
            clientAddress: "unix",
            id: "1"
        )
    }

    @Test(
        "A path is found by its decoded segments",
        arguments: [
            ("/v1/grants/abc/token", "GET token of abc"),
            ("/v1/grants/a%2Fb/token?x=/y", "GET token of a/b"),
            ("/v1/%67rants/a%20b/token", "GET token of a b"),
            ("/", "root"),
            ("http://h", "root"),
            ("/v1/grants//token", nil),
            ("/v1/grants/./token", nil),
            ("/v1/grants/../token", nil),
            ("/v1/grants/%2e%2e/token", nil),
            ("/v1/grants/a/b/token", nil),
            ("/v1/grants/abc/token/", nil),
            ("//v1/grants/abc/token", nil),
            ("/v1/grants%2Fabc/token", nil),
            ("/V1/grants/abc/token", nil),
            ("", nil),
            ("*", nil),
        ] as [(String, String?)]
    )
    func path(target: String, text: String?) async throws {
        let answer = try await answer("GET", target)
        #expect(String(decoding: answer.body, as: UTF8.self) == text ?? "unknown")
        #expect(answer.status == (text == nil ? 404 : 200))
    }

    @Test("HEAD is answered by the route for GET, and the log gets the pattern")
    func head() async throws {
        let answer = try await answer("HEAD", "/v1/grants/abc/token")
        #expect(String(decoding: answer.body, as: UTF8.self) == "GET token of abc")
        #expect(answer.route == "/v1/grants/{user_id}/token")
    }

    @Test(
        "Another method gets the list of allowed methods",
        arguments: [
            ("/v1/grants/a/token", "GET, HEAD, POST"), ("/only", "POST"), ("/v1/things/new", "POST"),
            ("/v1/things/7", "GET, HEAD"),
        ]
    )
    func wrongMethod(target: String, allow: String) async throws {
        let answer = try await answer("PUT", target)
        #expect(answer.status == 405)
        #expect(answer.headers.first { $0.name == "Allow" }?.value == allow)
        #expect(String(decoding: answer.body, as: UTF8.self) == "not PUT")
    }

    @Test("A segment that a route spells out is no name for another")
    func spelledOut() async throws {
        #expect(String(decoding: try await answer("POST", "/v1/things/new").body, as: UTF8.self) == "one more")
        #expect(String(decoding: try await answer("GET", "/v1/things/7").body, as: UTF8.self) == "thing 7")
        #expect(try await answer("GET", "/v1/things/new").status == 405)
        #expect(Self.router.immediateReply(Self.request("GET", "/v1/things/new")) == nil)
    }

    @Test("A route's immediate handler responds if it can, else its handler does")
    func immediateHandler() async throws {
        guard case .respond(let response)? = Self.router.immediateReply(Self.request("POST", "/only")) else {
            Issue.record("no immediate reply")
            return
        }
        #expect(response.route == "/only")
        for (method, target, body) in [("POST", "/only", "x"), ("GET", "/", ""), ("GET", "/x", ""), ("PUT", "/", "")] {
            let isLeftToHandler =
                if case nil = Self.router.immediateReply(Self.request(method, target, body: body)) { true } else {
                    false
                }
            #expect(isLeftToHandler)
        }
        #expect(try await answer("POST", "/only", body: "x").body == Array("handler".utf8))
    }
}
