import Testing

@testable import WorkerTokens

@Suite("Requests for tokens")
struct RequestBuilderTests {
    @Test(
        "The worker must be https, or on this machine",
        arguments: [
            ("https://worker.example.com:9443", true), ("HTTPS://worker.example.com/base/", true),
            ("http://127.0.0.1:9464", true), ("http://localhost:9464", true), ("http://[::1]:9464", true),
            ("http://worker.example.com", false), ("http://127.0.0.1.example.com", false),
            ("ftp://worker.example.com", false), ("worker.example.com", false), ("https:", false),
            ("https://user@worker.example.com", false), ("https://worker.example.com?x=1", false),
        ]
    )
    func baseURL(text: String, isAccepted: Bool) {
        let builder = try? RequestBuilder(baseURL: text, credential: "credential")
        #expect((builder != nil) == isAccepted)
    }

    @Test("A credential that would change the head is refused", arguments: ["", "a b", "a\r\nX: y", "ä", "a\u{0}"])
    func credential(text: String) {
        #expect(throws: TokenError.self) { try RequestBuilder(baseURL: "https://worker.example.com", credential: text) }
    }

    @Test(
        "A user's id is one segment of the path",
        arguments: [
            ("alice@example.com", "alice%40example.com"), ("a/b", "a%2Fb"), ("a?b#c", "a%3Fb%23c"),
            ("Ärger 1", "%C3%84rger%201"), ("a%2Fb", "a%252Fb"), ("…", "%E2%80%A6"), ("a.b_c~d-e", "a.b_c~d-e"),
        ]
    )
    func path(user: String, segment: String) throws {
        let request = try request(user: user)
        #expect(request.target == "/v1/grants/\(segment)/token?min_ttl=60")
        #expect(request.url == "https://worker.example.com/base\(request.target)")
    }

    @Test("An id that a proxy would take for a part of the path is refused", arguments: ["", ".", ".."])
    func dotSegments(user: String) {
        #expect(throws: TokenError.self) { try request(user: user) }
    }

    @Test("A life that the worker does not allow is refused", arguments: [-1, 3601])
    func minimumLife(seconds: Int) {
        #expect(throws: TokenError.self) { try request(user: "alice", minimumLife: seconds) }
    }

    @Test("Neither a request, a response nor a token prints its secret")
    func secrets() throws {
        let request = try request(user: "alice")
        let response = FakeWorker.token("ya29.secret")
        let token = try TokenResponse.result(of: response, sentAt: 0).get()
        for text in ["\(request)", "\(response)", "\(token)", String(reflecting: token), "\(AuthenticationKey([1]))"] {
            #expect(!text.contains("secret") && !text.contains("credential") && !text.contains("["))
        }
        var dumped = ""
        dump(request, to: &dumped)
        dump(response, to: &dumped)
        dump(token, to: &dumped)
        #expect(!dumped.contains("secret") && !dumped.contains("credential"))
    }

    private func request(user: String, minimumLife: Int = 60) throws -> WorkerTokens.Request {
        let builder = try RequestBuilder(baseURL: "https://worker.example.com/base/", credential: "credential")
        let subject = TokenSubject(user: user, connection: nil, scopes: [])
        return try builder.request(for: TokenDemand(subject: subject, minimumLife: minimumLife, refused: nil))
    }
}
