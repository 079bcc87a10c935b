import Dispatch
import HTTPClient
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import GoogleOAuth
@testable import HTTPServer
@testable import Routes
@testable import Storage

@Suite("Tokens of a login")
struct AppTokensTests {
    static let issuer = "https://login.example/"
    static let me = "/v1/user/me"

    let keys: LoginKeys

    init() throws { keys = try LoginKeys() }

    func fixture(
        hasSecret: Bool = true,
        sources: [KeySetCache.Source]? = nil,
        issuer: String? = AppTokensTests.issuer,
        audience: String? = "app",
        userClaim: String = "sub",
        acceptFormerTokensUntil: Timestamp? = nil
    ) throws -> AccountFixture {
        try AccountFixture(
            acceptFormerTokensUntil: acceptFormerTokensUntil,
            appTokens: { [keys] usual in
                let http = try LoginKeys.http.get()
                return AppTokens(
                    signer: hasSecret ? usual.signer : nil,
                    keySets: (sources ?? [keys.source]).map { KeySetCache($0, http: http, time: usual.time) },
                    issuer: issuer,
                    audience: audience,
                    userClaim: userClaim,
                    store: usual.store,
                    time: usual.time
                )
            }
        )
    }

    /// Writes the claims of a good token; `other` comes first, and replaces those of its names.
    static func claims(
        at now: Timestamp,
        without names: Set<String> = [],
        _ other: @escaping (inout JSONLine) -> Void = { _ in }
    ) -> (inout JSONLine) -> Void {
        { line in
            other(&line)
            if !names.contains("sub") { line.field("sub", "42") }
            if !names.contains("iss") { line.field("iss", issuer) }
            if !names.contains("aud") { line.field("aud", "app") }
            if !names.contains("exp") { line.field("exp", now.milliseconds / 1000 + 3600) }
        }
    }

    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var expected: String
        var removed: Set<String>
        var other: @Sendable (inout JSONLine) -> Void

        init(
            _ name: String,
            _ expected: String,
            without removed: Set<String> = [],
            _ other: @escaping @Sendable (inout JSONLine) -> Void = { _ in }
        ) {
            testDescription = name
            self.expected = expected
            self.removed = removed
            self.other = other
        }
    }

    @Test(
        "are accepted from the issuer and for the audience that are set",
        arguments: [
            Case("a good one", "200"),
            Case("without an issuer", "401 INVALID_TOKEN", without: ["iss"]),
            Case("of another issuer", "401 INVALID_TOKEN", without: ["iss"]) {
                $0.field("iss", "https://login.example")
            },
            Case("without an audience", "401 INVALID_TOKEN", without: ["aud"]),
            Case("for another audience", "401 INVALID_TOKEN", without: ["aud"]) { $0.field("aud", "other") },
            Case("for several audiences", "200", without: ["aud"]) { line in
                line.array("aud") {
                    $0.element("other")
                    $0.element("app")
                }
            },
            Case("for other audiences", "401 INVALID_TOKEN", without: ["aud"]) { $0.array("aud") { $0.element("b") } },
            Case("of Cognito, with client_id", "200", without: ["aud"]) { $0.field("client_id", "app") },
            Case("of another client_id", "401 INVALID_TOKEN", without: ["aud"]) { $0.field("client_id", "b") },
            Case("for another audience, with client_id", "401 INVALID_TOKEN", without: ["aud"]) { line in
                line.field("aud", "other")
                line.field("client_id", "app")
            },
            Case("expired", "401 TOKEN_EXPIRED", without: ["exp"]) { $0.field("exp", 1000) },
            Case("without an expiry", "401 INVALID_TOKEN", without: ["exp"]),
            Case("without a user", "401 INVALID_TOKEN", without: ["sub"]),
            Case("with the user in another claim", "401 INVALID_TOKEN", without: ["sub"]) { $0.field("user_id", "42") },
            Case("with another user in another claim", "200") { $0.field("user_id", "43") },
            Case("with a session of the login", "200") { $0.field("sid", "sess_2abc") },
            Case("of another type", "401 INVALID_TOKEN") { $0.field("type", "refresh") },
        ]
    )
    func target(_ example: Case) async throws {
        let fixture = try fixture()
        let token = try keys.token(Self.claims(at: fixture.time.now, without: example.removed, example.other))
        #expect(try await fixture.send("GET", Self.me, token: token).statusAndCode == example.expected)
    }

    @Test("are refused if they are not signed by the named key, and its algorithm")
    func forged() async throws {
        let fixture = try fixture(issuer: nil, audience: nil)
        let good = try keys.token(Self.claims(at: fixture.time.now))
        let parts = good.split(separator: ".").map(String.init)
        var forged = [
            // An unknown key, which only a fetch shows to be unknown.
            try keys.token(keyID: "k2", key: keys.second, Self.claims(at: fixture.time.now)),
            try keys.token(key: keys.second, Self.claims(at: fixture.time.now)),
            try keys.token(type: "logout+jwt", Self.claims(at: fixture.time.now)),
            "\(parts[0]).\(Base64URL.encode(Array(#"{"sub":"43","exp":9999999999}"#.utf8))).\(parts[2])",
            "\(parts[0]).\(parts[1]).", "\(parts[0]).\(parts[1]).AAAA",
        ]
        let modulus = try keys.first.publicNumbers().modulus
        for (algorithm, secret) in [
            ("none", modulus), ("HS256", modulus), ("HS256", Array(Base64URL.encode(modulus).utf8)), ("ES256", modulus),
            ("RS384", modulus), ("rs256", modulus),
        ] {
            let header = Base64URL.encode(Array(#"{"alg":"\#(algorithm)","kid":"k1"}"#.utf8))
            let signed = "\(header).\(parts[1])"
            let mac = MessageKey(Secret(utf8: secret)).authenticate(Array(signed.utf8))
            forged += ["\(signed).\(Base64URL.encode(mac))", "\(signed).\(parts[2])"]
        }
        for token in forged {
            #expect(
                try await fixture.send("GET", Self.me, token: token).statusAndCode == "401 INVALID_TOKEN",
                "\(token)"
            )
        }
        #expect(try await fixture.send("GET", Self.me, token: good).statusAndCode == "200")
    }

    @Test("follow the rotation of the keys")
    func rotation() async throws {
        let fixture = try fixture()
        let old = try keys.token(Self.claims(at: fixture.time.now))
        let new = try keys.token(keyID: "k2", key: keys.second, Self.claims(at: fixture.time.now))
        #expect(try await fixture.send("GET", Self.me, token: old).statusAndCode == "200")
        keys.publish(["k2": keys.second])
        // Within a minute, no fetch shows whether the key exists.
        let early = try await fixture.send("GET", Self.me, token: new)
        #expect(early.statusAndCode == "503 DEPENDENCY_FAILURE" && early.header("Retry-After") == "60")
        fixture.time.advance(by: .seconds(60))
        #expect(try await fixture.send("GET", Self.me, token: new).statusAndCode == "200")
        #expect(try await fixture.send("GET", Self.me, token: old).statusAndCode == "503 DEPENDENCY_FAILURE")
        fixture.time.advance(by: .seconds(60))
        #expect(try await fixture.send("GET", Self.me, token: old).statusAndCode == "401 INVALID_TOKEN")
    }

    @Test("of one login do not wait for the keys of another")
    func severalLogins() async throws {
        let reads = Mutex(0)
        let down = KeySetCache.Source.file {
            reads.withLock { $0 += 1 }
            throw CancellationError()
        }
        let fixture = try fixture(sources: [down, keys.source])
        let token = try keys.token(Self.claims(at: fixture.time.now))
        #expect(try await fixture.send("GET", Self.me, token: token).statusAndCode == "200")
        // The other keys could be fetched again.
        fixture.time.advance(by: .seconds(10))
        #expect(try await fixture.send("GET", Self.me, token: token).statusAndCode == "200")
        #expect(reads.withLock { $0 } == 1)
    }

    /// Gives the body a verification with two key sets: one with k9, whose server answers after a signal, and `keys`.
    private func withSlowLogin(
        _ body: (AppTokens, _ slow: KeySetCache, ScriptedServer, _ gate: DispatchSemaphore) async throws -> Void
    ) async throws {
        let fixture = try fixture()
        let gate = DispatchSemaphore(value: 0)
        // A busy machine cannot bring a request to its deadline.
        let http = try HTTPClient(configuration: .init(), time: fixture.time)
        let document = try LoginKeys.document(["k9": keys.second])
        let server = try ScriptedServer { _ in
            gate.wait()
            return TestSupport.answer(document)
        }
        let slow = KeySetCache(.keys(try Endpoint(server.url)), http: http, time: fixture.time)
        let good = KeySetCache(keys.source, http: http, time: fixture.time)
        try await body(
            AppTokens(signer: nil, keySets: [slow, good], store: fixture.store, time: fixture.time),
            slow,
            server,
            gate
        )
        server.stop()
        http.shutDown()
    }

    @Test("do not wait for a slow server when another login has the key, neither at first nor when that is old")
    func slowLogin() async throws {
        try await withSlowLogin { tokens, slow, server, gate in
            let time = try #require(tokens.time as? ManualTime)
            let token = try keys.token(Self.claims(at: time.now))
            #expect(try await tokens.claims(of: token).userID == "42")
            await server.waitForRequests(1)
            gate.signal()
            // The fetch has not failed: nothing waited for its deadline.
            #expect(try await slow.key(id: "k9").key != nil)
            // Both sets are old by now, and only one of them can have the key.
            time.advance(by: .seconds(3600))
            let later = try keys.token(Self.claims(at: time.now))
            #expect(try await tokens.claims(of: later).userID == "42")
            #expect(server.received.count == 1)
        }
    }

    @Test("are not refused before every login has answered")
    func unknownKey() async throws {
        try await withSlowLogin { tokens, slow, server, gate in
            let time = try #require(tokens.time as? ManualTime)
            let unknown = try keys.token(keyID: "k2", key: keys.second, Self.claims(at: time.now))
            let cancelled = Task { try await tokens.claims(of: unknown) }
            await server.waitForRequests(1)
            cancelled.cancel()
            let error = await #expect(throws: AppError.self) { try await cancelled.value }
            #expect(error?.payPulseResponse.status == 503)
            gate.signal()
            _ = try await slow.key(id: "k9")
            time.advance(by: .seconds(60))
            gate.signal()
            let refused = await #expect(throws: AppError.self) { try await tokens.claims(of: unknown) }
            #expect(refused?.payPulseResponse.status == 401)
        }
    }

    @Test("are not refused while the keys cannot be fetched")
    func unreachable() async throws {
        let fixture = try fixture()
        keys.publish(nil)
        let token = try keys.token(Self.claims(at: fixture.time.now))
        let response = try await fixture.send("GET", Self.me, token: token)
        #expect(response.statusAndCode == "503 DEPENDENCY_FAILURE")
        #expect(response.headers.filter { $0.name == "Retry-After" }.map(\.value) == ["10"])
        let other = try await fixture.send("GET", "/api/auth/me", token: token)
        #expect(other.status == 503)
        #expect(other.headers.filter { $0.name == "Retry-After" }.map(\.value) == ["10"])
        #expect(
            try await fixture.send("GET", Self.me, token: fixture.token(ofUser: "42")).statusAndCode
                == "401 INVALID_TOKEN"
        )
        keys.publish(["k1": keys.first])
        fixture.time.advance(by: .seconds(10))
        #expect(try await fixture.send("GET", Self.me, token: token).statusAndCode == "200")
    }

    @Test("hold those of the shared secret to the same issuer and audience, but not the worker's own")
    func sharedSecret() async throws {
        let now = ManualTime().now
        let fixture = try fixture(acceptFormerTokensUntil: now + .seconds(86_400))
        #expect(
            try await fixture.send("GET", Self.me, token: fixture.token(ofUser: "42")).statusAndCode
                == "401 INVALID_TOKEN"
        )
        let good = fixture.sign { line in
            line.field("sub", "42")
            line.field("iss", Self.issuer)
            line.field("aud", "app")
        }
        #expect(try await fixture.send("GET", Self.me, token: good).statusAndCode == "200")
        fixture.google.setAccount("ya29.jane")
        let pair = try await fixture.signIn()
        #expect(try await fixture.send("GET", Self.me, token: pair.access).statusAndCode == "200")
        #expect(try await fixture.refresh(pair.refresh).status == 200)
        for (issuer, status) in [("https://other.example/", 401), (Self.issuer, 200)] {
            let former = fixture.sign { line in
                line.field("sub", "42")
                line.field("type", "refresh")
                line.field("iss", issuer)
                line.field("aud", "app")
            }
            #expect(try await fixture.refresh(former).status == status)
        }
    }

    @Test("work without a shared secret, which only the routes need that issue sessions")
    func withoutSecret() async throws {
        let fixture = try fixture(hasSecret: false)
        fixture.google.setAccount("ya29.jane")
        let token = try keys.token(Self.claims(at: fixture.time.now))
        #expect(try await fixture.send("GET", Self.me, token: token).statusAndCode == "200")
        #expect(
            try await fixture.send("GET", Self.me, token: fixture.token(ofUser: "42")).statusAndCode
                == "401 INVALID_TOKEN"
        )
        #expect(try await fixture.send("POST", "/api/auth/logout", token: token).status == 200)
        let signIn = try await fixture.send("POST", "/api/auth/mobile/google", json: #"{"access_token":"ya29.jane"}"#)
        #expect(signIn.statusAndDetail == "404 Not Found")
        #expect(try await fixture.refresh("a").statusAndDetail == "404 Not Found")
        #expect(try await fixture.send("GET", "/api/auth/status")["configured"]?.bool == false)
        #expect(fixture.google.lookups == 0)
    }
}
