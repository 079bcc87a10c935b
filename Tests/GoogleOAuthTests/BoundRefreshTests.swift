import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import GoogleOAuth
@testable import HTTPClient

/// The real client against a scripted server on this machine.
@Suite("The refresh of a bound token", .timeLimit(.minutes(10)))
struct BoundRefreshTests {
    private static let good = #"{"access_token":"ya29.x","expires_in":3599,"token_type":"Bearer","scope":"a"}"#
    private static let challenge =
        #"{"error":"use_dpop_nonce","error_description":"Authorization server requires nonce"}"#
    private static let refused = #"{"error":"invalid_dpop_proof","error_description":"DPoP proof is invalid"}"#

    private let key: BindingKey
    private let time = ManualTime()

    init() throws {
        key = try #require(RingKey.randomBinding().binding)
    }

    private func google(_ client: HTTPClient, _ server: ScriptedServer, query: String = "") throws -> GoogleOAuthAPI {
        let base = "http://127.0.0.1:\(server.port)"
        let endpoints = GoogleEndpoints(
            token: try Endpoint("\(base)/token\(query)"),
            userinfo: try Endpoint("\(base)/userinfo"),
            tokeninfo: try Endpoint("\(base)/tokeninfo"),
            revocation: try Endpoint("\(base)/revoke")
        )
        return GoogleOAuthAPI(http: client, endpoints: endpoints, time: time)
    }

    /// Runs a test against a server that answers the requests by their number, from zero.
    private func withGoogle(
        query: String = "",
        answering script: @escaping @Sendable (Int, ScriptedServer.Received) -> [ScriptedServer.Step],
        _ test: (GoogleOAuthAPI, ScriptedServer) async throws -> Void
    ) async throws {
        let count = Atomic(0)
        let server = try ScriptedServer { request in
            script(count.wrappingAdd(1, ordering: .relaxed).oldValue, request)
        }
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.shutDown() }
        try await test(try google(client, server, query: query), server)
    }

    private func refresh(
        with google: GoogleOAuthAPI,
        client: String = "c",
        boundTo key: BindingKey? = nil,
        isBound: Bool = true,
        mayStillSend: @escaping @Sendable () -> Bool = { true },
        willAnswerChallenge: @escaping @Sendable () -> Void = {}
    ) async -> ParsedRefreshResponse {
        let bindingKey = isBound ? key ?? self.key : nil
        let response = await withCheckedContinuation { caller in
            let submission = RefreshSubmission(
                token: Secret(sentToken),
                client: OAuthClientCredentials(id: client),
                bindingKey: bindingKey,
                mayStillSend: mayStillSend,
                willAnswerChallenge: willAnswerChallenge
            ) { caller.resume(returning: $0) }
            _ = google.refresh([submission])
        }
        return ParsedRefreshResponse.reading(response, sent: [Secret(sentToken)])
    }

    private static func nonce(_ text: String) -> String { "DPoP-Nonce: \(text)\r\n" }

    @Test("carries a proof of RFC 9449: its key, its request, its time and an id of its own")
    func proof() async throws {
        try await withGoogle(query: "?a=b") { _, _ in
            answer(Self.good)
        } _: { google, server in
            for _ in 0..<2 { #expect(await refresh(with: google).verdict.kind == .granted) }
            let proofs = try server.received.map { try #require(ReceivedProof(of: $0)) }
            #expect(proofs.count == 2)
            for proof in proofs {
                #expect(proof.isSigned)
                #expect(proof.header["typ"] == .string("dpop+jwt") && proof.header["alg"] == .string("ES256"))
                #expect(proof.header["jwk"]?.object.map { Set($0.keys) } == ["kty", "crv", "x", "y"])
                #expect(proof.header["jwk"]?["x"] == .string(Base64URL.encode(key.publicPoint.x)))
                #expect(proof.claims.object.map { Set($0.keys) } == ["htm", "htu", "iat", "jti"])
                #expect(proof.claims["htm"] == .string("POST"))
                #expect(proof.claims["htu"] == .string("http://127.0.0.1:\(server.port)/token"))
                #expect(proof.claims["iat"]?.integer == time.now.milliseconds / 1000)
            }
            #expect(proofs[0].id != proofs[1].id)
            #expect(server.received[0].head.hasPrefix("POST /token?a=b HTTP/1.1\r\n"))
        }
    }

    @Test("answers a challenge by one more request, and its caller gets only the second response")
    func challenged() async throws {
        try await withGoogle { number, _ in
            number == 0
                ? answer(Self.challenge, status: "400 Bad Request", headers: Self.nonce("first"))
                : answer(Self.good, headers: Self.nonce("second"))
        } _: { google, server in
            #expect(await refresh(with: google).verdict.tokens?.accessToken.reveal() == "ya29.x")
            let proofs = try server.received.map { try #require(ReceivedProof(of: $0)) }
            #expect(proofs.map(\.nonce) == [nil, "first"])
            #expect(proofs.allSatisfy(\.isSigned) && proofs[0].id != proofs[1].id)
            #expect(server.received[0].body == server.received[1].body)
            // The nonce of a success is that of the next proof.
            _ = await refresh(with: google)
            #expect(ReceivedProof(of: server.received[2])?.nonce == "second")
        }
    }

    @Test("says before a second request that it will send one", arguments: [0, 1, 2])
    func announcement(challenges: Int) async throws {
        try await withGoogle { number, _ in
            number < challenges
                ? answer(Self.challenge, status: "400 Bad Request", headers: Self.nonce("n\(number)"))
                : answer(Self.good)
        } _: { google, server in
            let announced = Atomic(0)
            _ = await refresh(with: google, willAnswerChallenge: { announced.wrappingAdd(1, ordering: .relaxed) })
            #expect(announced.load(ordering: .relaxed) == min(challenges, 1))
            #expect(server.received.count == 1 + min(challenges, 1))
        }
    }

    @Test("that is challenged twice is a fault that might pass, after two requests")
    func challengedTwice() async throws {
        try await withGoogle { number, _ in
            answer(Self.challenge, status: "400 Bad Request", headers: Self.nonce("n\(number)"))
        } _: { google, server in
            let response = await refresh(with: google)
            #expect(response.verdict.kind == .proofRefused && response.verdict.code == "use_dpop_nonce")
            #expect(response.status == 400)
            #expect(server.received.map { ReceivedProof(of: $0)?.nonce } == [nil, "n0"])
            _ = await refresh(with: google)
            #expect(server.received.map { ReceivedProof(of: $0)?.nonce } == [nil, "n0", "n1", "n2"])
        }
    }

    @Test(
        "does not repeat a nonce that RFC 9449 does not allow",
        arguments: ["", "a b", "a\"b", "a\\b", "é", String(repeating: "a", count: ProofNonce.maximumLength + 1)]
    )
    func unusableNonce(nonce: String) async throws {
        try await withGoogle { _, _ in
            answer(Self.challenge, status: "400 Bad Request", headers: Self.nonce(nonce))
        } _: { google, server in
            #expect(await refresh(with: google).verdict.code == "use_dpop_nonce")
            _ = await refresh(with: google)
            #expect(server.received.map { ReceivedProof(of: $0)?.nonce } == [nil, nil])
        }
    }

    @Test("keeps the longest nonce, and the characters at the limits of what is allowed")
    func longestNonce() {
        for text in [String(repeating: "a", count: ProofNonce.maximumLength), "!", "#[]~"] {
            #expect(ProofNonce(text)?.text == text)
        }
        for text in ["\u{7f}", "\u{1f}", "a\r", "a\n"] { #expect(ProofNonce(text) == nil) }
    }

    @Test("keeps the refresh token of an answer that calls itself a challenge")
    func challengeWithTokens() async throws {
        let body = #"{"error":"use_dpop_nonce","access_token":"ya29.x","refresh_token":"1//rotated"}"#
        try await withGoogle { _, _ in
            answer(body, status: "400 Bad Request", headers: Self.nonce("n"))
        } _: { google, server in
            #expect(await refresh(with: google).verdict.rotated == "1//rotated")
            #expect(server.received.count == 1)
        }
    }

    @Test("does not answer a challenge if its lease would not last")
    func leaseEnds() async throws {
        try await withGoogle { _, _ in
            answer(Self.challenge, status: "400 Bad Request", headers: Self.nonce("n"))
        } _: { google, server in
            let asked = Atomic(0)
            let response = await refresh(with: google) { asked.wrappingAdd(1, ordering: .relaxed).oldValue == 0 }
            #expect(response.verdict.kind == .notSent)
            #expect(server.received.count == 1)
        }
    }

    @Test("that was cancelled before it began is not sent")
    func cancelled() async throws {
        try await withGoogle { _, _ in
            answer(Self.good)
        } _: { _, server in
            let client = try HTTPClient()
            defer { client.shutDown() }
            let prover = Prover(endpoint: try Endpoint(server.url), time: time)
            let response = await withCheckedContinuation { caller in
                let submission = RefreshSubmission(
                    token: Secret(sentToken),
                    client: OAuthClientCredentials(id: "c"),
                    mayStillSend: { true },
                    receive: { caller.resume(returning: $0) }
                )
                let refresh = BoundRefresh(submission, boundTo: key, http: client, prover: prover)
                refresh.cancel()
                #expect(refresh.begin() == nil)
            }
            #expect(ParsedRefreshResponse.reading(response, sent: []).verdict.kind == .notSent)
            #expect(server.received.isEmpty)
        }
    }

    @Test(
        "names this machine's clock if it can be why a proof is refused",
        arguments: [
            (600, "this machine's clock is 10 min behind the endpoint's: set it right; invalid_dpop_proof: "),
            (-600, "this machine's clock is 10 min ahead of the endpoint's: set it right; invalid_dpop_proof: "),
            (60, "invalid_dpop_proof: "), (-60, "invalid_dpop_proof: "),
        ] as [(Int64, String)]
    )
    func clock(secondsOff: Int64, text: String) async throws {
        let date = time.now + .seconds(secondsOff)
        // The clock of the tests shows Fri, 15 Jan 2027.
        let clock = date.iso8601Seconds.split(separator: "T")[1].dropLast()
        try await withGoogle { _, _ in
            answer(
                Self.refused,
                status: "400 Bad Request",
                headers: "Date: Fri, 15 Jan 2027 \(clock) GMT\r\n"
            )
        } _: { google, server in
            let response = await refresh(with: google)
            #expect(response.verdict.kind == .proofRefused && response.verdict.code == "invalid_dpop_proof")
            #expect(response.text == "\(text)DPoP proof is invalid")
            #expect(server.received.count == 1)
        }
    }

    @Test(
        "does not take an invalid_grant for the end of a grant while this machine's clock is wrong",
        arguments: [0, 600]
    )
    func invalidGrant(secondsOff: Int64) async throws {
        let clock = (time.now + .seconds(secondsOff)).iso8601Seconds.split(separator: "T")[1].dropLast()
        try await withGoogle { _, _ in
            answer(
                #"{"error": "invalid_grant", "error_description": "Bad Request"}"#,
                status: "400 Bad Request",
                headers: "Date: Fri, 15 Jan 2027 \(clock) GMT\r\n"
            )
        } _: { google, _ in
            let response = await refresh(with: google)
            #expect(response.verdict.code == (secondsOff == 0 ? "invalid_grant" : "clock_wrong"))
            #expect((response.verdict.kind == .proofRefused) == (secondsOff != 0))
        }
    }

    @Test("has a nonce for each client, and each worker has its own")
    func nonces() async throws {
        // Each client id gets nonces of its own.
        let issued = Mutex<[String: Int]>([:])
        let server = try ScriptedServer { request in
            let client = String(decoding: request.body, as: UTF8.self).contains("client_id=a") ? "a" : "b"
            let proof = ReceivedProof(of: request)
            if let nonce = proof?.nonce, nonce.hasPrefix("\(client)-") { return answer(Self.good) }
            let number = issued.withLock { issued in
                issued[client, default: 0] += 1
                return issued[client, default: 0]
            }
            return answer(
                Self.challenge,
                status: "400 Bad Request",
                headers: Self.nonce("\(client)-\(number)")
            )
        }
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.shutDown() }
        let (one, two) = (try google(client, server), try google(client, server))
        for _ in 0..<2 {
            for google in [one, two] {
                for name in ["a", "b"] {
                    #expect(await refresh(with: google, client: name).verdict.kind == .granted)
                }
            }
        }
        // Each of the two workers was challenged once for each client.
        #expect(issued.withLock(\.self) == ["a": 2, "b": 2])
        #expect(server.received.count == 12)
        let last = server.received.suffix(4).map { ReceivedProof(of: $0)?.nonce }
        #expect(last == ["a-1", "b-1", "a-2", "b-2"])
    }

    @Test("An unbound token is refreshed without a proof, and a challenge is not answered")
    func unbound() async throws {
        try await withGoogle { _, _ in
            answer(Self.challenge, status: "400 Bad Request", headers: Self.nonce("n"))
        } _: { google, server in
            let response = await refresh(with: google, isBound: false)
            #expect(response.verdict.kind == .proofRefused)
            #expect(server.received.count == 1)
            #expect(!server.received[0].head.lowercased().contains("dpop"))
        }
    }

    @Test("The exchange of a code has the hash of the code as its proof's id, and a nonce of its own")
    func exchange() async throws {
        try await withGoogle { number, _ in
            number == 0
                ? answer(Self.challenge, status: "400 Bad Request", headers: Self.nonce("of-codes"))
                : answer(
                    #"{"access_token":"ya29.x","expires_in":3599,"refresh_token":"1//bound"}"#,
                    headers: Self.nonce("next")
                )
        } _: { google, server in
            let client = OAuthClientCredentials(id: "c", secret: Secret("hush"))
            guard case .granted(let tokens) = await google.exchange(Secret("4/0Acode"), client: client, boundTo: key)
            else {
                Issue.record("the code is not exchanged")
                return
            }
            #expect(tokens.rotated?.reveal() == "1//bound")
            let proofs = try server.received.map { try #require(ReceivedProof(of: $0)) }
            let hash = Base64URL.encode(Digest.sha256(Array("4/0Acode".utf8)))
            #expect(proofs.map(\.id) == [hash, hash])
            #expect(proofs.map(\.nonce) == [nil, "of-codes"] && proofs.allSatisfy(\.isSigned))
            _ = await refresh(with: google)
            #expect(ReceivedProof(of: server.received[2])?.nonce == nil)
        }
    }

    @Test(
        "The exchange of a code whose proof is refused fails for now, because the code is still good",
        arguments: [challenge, refused]
    )
    func exchangeRefused(body: String) async throws {
        try await withGoogle { number, _ in
            answer(body, status: "400 Bad Request", headers: Self.nonce("n\(number)"))
        } _: { google, server in
            let client = OAuthClientCredentials(id: "c")
            guard case .proofRefused = await google.exchange(Secret("4/0Acode"), client: client, boundTo: key) else {
                Issue.record("the code counts as refused")
                return
            }
            #expect(server.received.count == (body == Self.challenge ? 2 : 1))
        }
    }

    @Test("The exchange of a code without a key has no proof")
    func unboundExchange() async throws {
        try await withGoogle { _, _ in
            answer(#"{"access_token":"ya29.x","expires_in":3599}"#)
        } _: { google, server in
            _ = await google.exchange(Secret("4/0Acode"), client: OAuthClientCredentials(id: "c"), boundTo: nil)
            #expect(!server.received[0].head.lowercased().contains("dpop"))
        }
    }
}
