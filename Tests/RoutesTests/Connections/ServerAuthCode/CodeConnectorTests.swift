import GoogleOAuth
import Scheduler
import Storage
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Routes

@Suite("A server auth code", .timeLimit(.minutes(10)))
struct CodeConnectorTests {
    private func fixture() throws -> AccountFixture {
        let fixture = try AccountFixture()
        fixture.codes.configure()
        fixture.google.setAccount("ya29.jane")
        return fixture
    }

    // MARK: Connected

    @Test("connects the user with a grant of the server's client")
    func first() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A", scope: "openid gmail calendar", refreshTokenLifetime: .seconds(604_800))
        let response = try await fixture.connect("ya29.jane", code: "4/0A")
        #expect(response.status == 201)
        let expected: [String: JSONValue] = [
            "google_email": .string("jane@gmail.com"), "scope": .string("openid gmail calendar"),
            "account_switch": .bool(false), "message": .string("First Gmail connection"),
            "refresh_token_missing": .bool(false),
        ]
        #expect(response.data?.object == expected)
        #expect(fixture.codes.credentials == ["\(FakeCodeEndpoint.clientID) the-server's-secret"])
        let grant = try #require(try await fixture.grant())
        #expect(grant.clientID == FakeCodeEndpoint.clientID)
        #expect(grant.owner.googleUserID == "g-1")
        #expect(grant.accessToken?.expiresAt == fixture.time.now + .seconds(3599))
        #expect(grant.refreshToken?.expiresAt == fixture.time.now + .seconds(604_800))
        #expect(try await fixture.refreshToken() == "1//server")
        #expect(try await fixture.accessToken() == "ya29.server")
    }

    @Test("gets a refresh token that is bound to the ring's key, and the key is recorded before")
    func bound() async throws {
        let key = try RingKey.randomBinding()
        let fixture = try AccountFixture(bindsTokens: true, bindingKey: key)
        fixture.codes.configure()
        fixture.google.setAccount("ya29.jane")
        fixture.codes.grant("4/0A")
        fixture.codes.hold()
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        try await poll { fixture.codes.exchanged == ["4/0A"] }
        #expect(try await fixture.store.recordedKeyIDs().contains(key.id))
        fixture.codes.release()
        #expect(try await response.status == 201)
        #expect(fixture.codes.bindingKeys == [key.id])
        #expect(try await fixture.grant()?.refreshToken?.bindingKeyID == key.id)

        // The app brings the same token itself, and does not know that it is bound.
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//server")
        #expect(try await fixture.grant()?.refreshToken?.bindingKeyID == key.id)
        // Another one is not bound.
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//other")
        #expect(try await fixture.refreshToken() == "1//other")
        #expect(try await fixture.grant()?.refreshToken?.bindingKeyID == nil)
    }

    @Test("whose refresh token would not be bound is not exchanged if it must be")
    func unbindable() async throws {
        let fixture = try AccountFixture(bindsTokens: true)
        fixture.codes.configure()
        fixture.google.setAccount("ya29.jane")
        fixture.codes.grant("4/0A")
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status >= 500)
        #expect(fixture.codes.exchanged.isEmpty)
    }

    @Test("is not exchanged if the key of its refresh token cannot be recorded: the ring lacks one of other workers")
    func unrecordable() async throws {
        let fixture = try AccountFixture(bindsTokens: true, bindingKey: RingKey.randomBinding())
        fixture.codes.configure()
        fixture.google.setAccount("ya29.jane")
        fixture.codes.grant("4/0A")
        let other = try RingKey.random()
        try await fixture.store.recordKey(other.id, of: KeyRing(keys: [other]))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status >= 500)
        #expect(fixture.codes.exchanged.isEmpty)
        #expect(try await fixture.store.recordedKeyIDs() == [other.id])
    }

    @Test("is not bound if that is not switched on, whatever the ring holds")
    func notBound() async throws {
        let fixture = try AccountFixture(bindingKey: RingKey.randomBinding())
        fixture.codes.configure()
        fixture.google.setAccount("ya29.jane")
        fixture.codes.grant("4/0A")
        _ = try await fixture.connect("ya29.jane", code: "4/0A")
        #expect(fixture.codes.bindingKeys == [nil])
        #expect(try await fixture.grant()?.refreshToken?.bindingKeyID == nil)
    }

    @Test("gets the end that the app knows where Google names none")
    func consentEndOfApp() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        _ = try await fixture.connect("ya29.jane", code: "4/0A", more: #","refresh_token_expires_in":604799"#)
        let connectedAt = fixture.time.now
        #expect(try await fixture.grant()?.refreshToken?.expiresAt == connectedAt + .seconds(604_799))
        fixture.codes.grant("4/0B", refreshTokenLifetime: .seconds(86_400))
        _ = try await fixture.connect("ya29.jane", code: "4/0B", more: #","refresh_token_expires_in":604799"#)
        #expect(try await fixture.grant()?.refreshToken?.expiresAt == fixture.time.now + .seconds(86_400))
    }

    @Test("whose refresh token must be used soon makes the grant due within half of that time")
    func refreshTokenTimeout() async throws {
        let fixture = try fixture()
        let connectedAt = fixture.time.now
        fixture.codes.grant("4/0A", refreshTokenTimeout: .seconds(600))
        _ = try await fixture.connect("ya29.jane", code: "4/0A")
        #expect(try await fixture.grant()?.dueAt == connectedAt + .seconds(300))
        // Another access token does not use the refresh token.
        fixture.time.advance(by: .seconds(200))
        fixture.google.setAccount("ya29.jane-2")
        _ = try await fixture.connect("ya29.jane-2")
        #expect(try await fixture.grant()?.dueAt == connectedAt + .seconds(300))
        // Another refresh token has its own.
        fixture.codes.grant("4/0B", access: "ya29.server-2", refresh: "1//next", refreshTokenTimeout: .seconds(60))
        _ = try await fixture.connect("ya29.jane", code: "4/0B")
        #expect(try await fixture.grant()?.dueAt == connectedAt + .seconds(230))
    }

    @Test("whose refresh token must be used soon is due in time although its account is unknown")
    func refreshTokenTimeoutOfUncheckedAccount() async throws {
        let fixture = try fixture()
        fixture.codes.grant(
            "4/0A",
            refreshTokenTimeout: .seconds(400),
            ofAccount: .failure(.unavailable(code: "http_503"))
        )
        _ = try await fixture.connect("ya29.jane", code: "4/0A")
        #expect(try await fixture.accessToken() == "ya29.jane")
        // The app's access token alone would make it due later.
        #expect(try await fixture.grant()?.dueAt == fixture.time.now + .seconds(200))
    }

    @Test("can come in a form, and with a token that is meant for the server")
    func form() async throws {
        let fixture = try fixture()
        fixture.google.setAccount(
            "ya29.jane",
            .init(audience: FakeCodeEndpoint.clientID, authorizedParty: FakeGoogle.clientID)
        )
        fixture.codes.grant("4/0A+b")
        let response = try await fixture.send(
            "POST",
            "/v1/auth/gmail-tokens",
            token: fixture.token(ofUser: "42"),
            form: "access_token=ya29.jane&server_auth_code=4%2F0A%2Bb"
        )
        #expect(response.status == 201)
        #expect(fixture.codes.exchanged == ["4/0A+b"])
    }

    @Test("makes the grant's access token no proof of a sign-in")
    func issuedToken() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        _ = try await fixture.connect("ya29.jane", code: "4/0A")
        fixture.google.setAccount("ya29.server")
        let signIn = try await fixture.send(
            "POST",
            "/api/auth/mobile/google",
            json: #"{"access_token":"ya29.server"}"#
        )
        #expect(signIn.status == 400)
        #expect(try await fixture.connect("ya29.server", code: "4/0B").statusAndCode == "400 INVALID_CREDENTIALS")
        #expect(fixture.codes.exchanged == ["4/0A"])
    }

    @Test("replaces a grant of the app's client, and a switch of accounts is reported")
    func replaces() async throws {
        let fixture = try fixture()
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//app")
        fixture.codes.grant("4/0A")
        let same = try await fixture.connect("ya29.jane", code: "4/0A")
        #expect(same.data?["message"] == .string("Same Google account or first connection"))
        #expect(try await fixture.grant()?.clientID == FakeCodeEndpoint.clientID)
        #expect(try await fixture.grant()?.generation == 2)
        fixture.google.setAccount("ya29.joe", .init(id: "g-2", email: "joe@gmail.com"))
        fixture.codes.grant("4/0B", access: "ya29.joe-server", refresh: "1//joe", ofAccount: .success("g-2"))
        let other = try await fixture.connect("ya29.joe", code: "4/0B")
        #expect(other.data?["account_switch"] == .bool(true))
        #expect(try await fixture.refreshToken() == "1//joe")
    }

    @Test("without a refresh token in the answer says so if the grant has none")
    func withoutRefreshToken() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A", refresh: nil)
        let first = try await fixture.connect("ya29.jane", code: "4/0A")
        #expect(first.status == 201)
        #expect(first.data?["refresh_token_missing"] == .bool(true))
        #expect(try await fixture.grant()?.refreshToken == nil)
        #expect(try await fixture.accessToken() == "ya29.server")
        fixture.codes.grant("4/0B", access: "ya29.server-2")
        _ = try await fixture.connect("ya29.jane", code: "4/0B")
        fixture.codes.grant("4/0C", access: "ya29.server-3", refresh: nil)
        let third = try await fixture.connect("ya29.jane", code: "4/0C")
        #expect(third.data?["refresh_token_missing"] == .bool(false))
        #expect(try await fixture.refreshToken() == "1//server")
        // The stored refresh token is dead, so it does not count.
        try await fixture.change { _ = $0.requireSignIn(reason: .init(rawValue: "invalid_rapt"), at: fixture.time.now) }
        fixture.codes.grant("4/0D", access: "ya29.server-4", refresh: nil)
        let fourth = try await fixture.connect("ya29.jane", code: "4/0D")
        #expect(fourth.data?["refresh_token_missing"] == .bool(true))
    }

    @Test("keeps a refresh token whose answer is faulty, or whose account cannot be looked up now")
    func unchecked() async throws {
        let fixture = try fixture()
        fixture.codes.set("4/0A", .incomplete(refreshToken: Secret("1//faulty")))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status == 201)
        #expect(try await fixture.refreshToken() == "1//faulty")
        #expect(try await fixture.accessToken() == "ya29.jane")
        fixture.codes.grant("4/0B", ofAccount: .failure(.unavailable(code: "http_503")))
        #expect(try await fixture.connect("ya29.jane", code: "4/0B").status == 201)
        #expect(try await fixture.refreshToken() == "1//server")
        #expect(try await fixture.accessToken() == "ya29.jane")
        fixture.codes.grant("4/0C", refresh: "1//refused", ofAccount: .failure(.refused))
        #expect(try await fixture.connect("ya29.jane", code: "4/0C").status == 201)
        #expect(try await fixture.refreshToken() == "1//refused")
        #expect(fixture.codes.revoked == [])
        // The first refresh checks the account.
        #expect(try await fixture.grant()?.isProven == false)
    }

    // MARK: Refused

    @Test(
        "that is spent, foreign or useless is refused, and nothing is stored",
        arguments: [
            (CodeExchange.refused("invalid_grant"), "400 INVALID_CODE"),
            (CodeExchange.unavailable("http_503"), "502 DEPENDENCY_FAILURE"),
            (CodeExchange.clientRefused("invalid_client"), "502 DEPENDENCY_FAILURE"),
            (
                CodeExchange.proofRefused(ProofRefusal(code: "invalid_dpop_proof"), reason: "x"),
                "502 DEPENDENCY_FAILURE"
            ),
        ]
    )
    func refused(answer: CodeExchange, expected: String) async throws {
        let fixture = try fixture()
        fixture.codes.set("4/0A", answer)
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == expected)
        #expect(try await fixture.grant() == nil)
        #expect(try await fixture.store.user("42") == nil)
    }

    @Test(
        "of another client, and a refused client, raise an alarm until a code works",
        arguments: [
            (CodeExchange.foreign("unauthorized_client"), "400 INVALID_CODE", "GIDServerClientID must be"),
            (CodeExchange.clientRefused("invalid_client"), "502 DEPENDENCY_FAILURE", "and its secret"),
        ]
    )
    func alarm(answer: CodeExchange, expected: String, words: String) async throws {
        let fixture = try fixture()
        fixture.codes.set("4/0A", answer)
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == expected)
        if case .foreign = answer {
            #expect(fixture.engine.currentAlarms.isEmpty, "one user can bring any code")
            for user in ["43", "44"] {
                fixture.codes.set("4/0\(user)", answer)
                #expect(
                    try await fixture.connect("ya29.jane", code: "4/0\(user)", user: user).statusAndCode == expected
                )
            }
        }
        let alarms = fixture.engine.currentAlarms
        #expect(alarms.map(\.kind) == [.codesRefused])
        #expect(alarms.allSatisfy { $0.text.contains(words) && $0.text.contains(FakeCodeEndpoint.clientID) })
        fixture.codes.set("4/0B", .refused("invalid_grant"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0B").statusAndCode == "400 INVALID_CODE")
        #expect(fixture.engine.currentAlarms.count == 1)
        fixture.codes.grant("4/0C")
        #expect(try await fixture.connect("ya29.jane", code: "4/0C").status == 201)
        #expect(fixture.engine.currentAlarms.isEmpty)
    }

    @Test(
        "whose proof is refused raises an alarm that says where to look, until a code works",
        arguments: [
            (CodeExchange.proofRefused(ProofRefusal(code: "invalid_dpop_proof"), reason: "x"), "this machine's clock"),
            (CodeExchange.proofRefused(ProofRefusal(code: "use_dpop_nonce"), reason: "x"), "header DPoP-Nonce"),
        ]
    )
    func alarmOfProof(answer: CodeExchange, words: String) async throws {
        let fixture = try fixture()
        fixture.codes.set("4/0A", answer)
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "502 DEPENDENCY_FAILURE")
        let alarm = try #require(fixture.engine.currentAlarms.first)
        #expect(alarm.kind == .codesRefused && fixture.engine.currentAlarms.count == 1)
        #expect(alarm.text.contains("proofs for codes") && alarm.text.contains(words))
        fixture.codes.grant("4/0A")
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status == 201, "the code is not spent")
        #expect(fixture.engine.currentAlarms.isEmpty)
    }

    @Test("of another account is refused, and its token is revoked")
    func otherAccount() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A", ofAccount: .success("g-2"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "400 INVALID_CREDENTIALS")
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == ["1//server"])
        #expect(try await fixture.grant() == nil)
        fixture.codes.grant("4/0B", refresh: nil, ofAccount: .success("g-2"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0B").statusAndCode == "400 INVALID_CREDENTIALS")
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == ["1//server", "ya29.server"])
    }

    @Test("of another account is not revoked if that would end the grant of another user")
    func sharedAccount() async throws {
        let fixture = try fixture()
        try await fixture.importGrant(ofUser: "7", owner: Grant.Owner(googleUserID: "g-2"), refreshToken: "1//joe")
        fixture.codes.grant("4/0A", ofAccount: .success("g-2"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "400 INVALID_CREDENTIALS")
        fixture.codes.grant("4/0B", refresh: "1//joe", ofAccount: .success("g-9"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0B").statusAndCode == "400 INVALID_CREDENTIALS")
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == [])
    }

    @Test("of another account is not revoked while that might end another connection of the user")
    func unknownAccount() async throws {
        let fixture = try fixture()
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//app")
        let work = try #require(ConnectionID("work"))
        try await fixture.importGrant(connection: work)
        fixture.codes.grant("4/0A", ofAccount: .success("g-2"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "400 INVALID_CREDENTIALS")
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == [])
        // It has ended, so a revocation ends nothing.
        let now = fixture.time.now
        try await fixture.change(connection: work) { _ = $0.disconnectByEvent(reason: .tokensRevoked, at: now) }
        fixture.codes.grant("4/0B", ofAccount: .success("g-2"))
        #expect(try await fixture.connect("ya29.jane", code: "4/0B").statusAndCode == "400 INVALID_CREDENTIALS")
        await fixture.exchanges.waitUntilNothingIsInProgress()
        #expect(fixture.codes.revoked == ["1//server"])
    }

    @Test("is not spent for a user who is deleted while Google is asked about the access token")
    func deletedMeanwhile() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        _ = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        let (isReached, mayContinue) = (AwaitedState(false), AwaitedState(false))
        fixture.store.beforeTransaction {
            isReached.change { $0 = true }
            await mayContinue.wait { $0 }
        }
        async let response = fixture.connect("ya29.jane", code: "4/0A")
        await isReached.wait { $0 }
        fixture.store.beforeTransaction {}
        _ = try await fixture.send("DELETE", "/v1/user/me", token: fixture.token(ofUser: "42"))
        mayContinue.change { $0 = true }
        #expect(try await response.statusAndCode == "404 USER_NOT_FOUND")
        #expect(fixture.codes.exchanged == [])
    }

    @Test("is not spent if the caller, the body or the store is not good")
    func notSpent() async throws {
        let fixture = try fixture()
        fixture.codes.grant("4/0A")
        let body = #"{"access_token":"ya29.jane","server_auth_code":"4/0A"}"#
        #expect(
            try await fixture.send("POST", "/v1/auth/gmail-tokens", json: body).statusAndCode
                == "401 INVALID_CREDENTIALS"
        )
        #expect(try await fixture.connect("ya29.unknown", code: "4/0A").statusAndCode == "400 INVALID_CREDENTIALS")
        let both = try await fixture.connect("ya29.jane", refreshToken: "1//a", code: "4/0A")
        #expect(both.statusAndCode == "400 INVALID_JSON")
        let long = try await fixture.connect("ya29.jane", code: String(repeating: "4", count: 2049))
        #expect(long.statusAndCode == "400 INVALID_JSON")
        fixture.store.failTransactions(1, with: .diskFull)
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "500 INTERNAL_SERVER_ERROR")
        fixture.codes.configure(nil)
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").statusAndCode == "400 INVALID_CODE")
        #expect(fixture.codes.exchanged == [])
        fixture.codes.configure()
        #expect(try await fixture.connect("ya29.jane", code: "4/0A").status == 201)
    }
}

extension AccountFixture {
    /// Posts a code as the app does.
    func connect(
        _ accessToken: String,
        refreshToken: String? = nil,
        code: String,
        user: String = "42",
        more: String = ""
    ) async throws -> ParsedResponse {
        try await connect(
            accessToken,
            refreshToken: refreshToken,
            user: user,
            fields: #","server_auth_code":"\#(code)"\#(more)"#
        )
    }
}
