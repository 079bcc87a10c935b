import Crypto
import Storage
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import HTTPServer
@testable import Scheduler
@testable import Status
@testable import Telemetry

@Suite("Google's security events", .timeLimit(.minutes(10)))
struct SecurityEventReceiverTests {
    private let fixture: SecurityEventFixture

    init() throws {
        fixture = try SecurityEventFixture()
    }

    private static func about(_ kind: SecurityEvent.Kind) -> SecurityEvent {
        SecurityEvent(kind: kind, googleUserID: SecurityEventFixture.account)
    }

    @Test(
        "tokens-revoked ends all grants of the account in any state, and no grants of other accounts",
        arguments: [GrantState.active, .retrying, .suspended, .reauthRequired]
    )
    func tokensRevoked(state: GrantState) async throws {
        try await fixture.connect(1, state: state)
        try await fixture.connect(2)
        try await fixture.connect(3, account: "another")
        try await fixture.connect(4, account: nil)
        let response = await fixture.post(Self.about(.tokensRevoked))
        #expect(response.status == 202 && response.body.isEmpty)
        for number: Int64 in [1, 2] {
            let grant = try await fixture.grant(number)
            #expect(grant.state == .disconnected && grant.reason == .tokensRevoked)
            #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
            #expect(grant.generation == 2)
            let history = try await fixture.store.events(of: grant.id, atMost: 5)
            #expect(history.map(\.kind) == [.state, .connected])
        }
        for number: Int64 in [3, 4] { #expect(try await fixture.grant(number).state == .active) }
        #expect(fixture.lines.securityEvents == ["tokens_revoked applied 2 0"])
        #expect(fixture.lines.lines(of: "state").count == 2)
    }

    @Test("tokens-revoked of another project does not end a grant, which is probed instead")
    func otherProject() async throws {
        let clients = ["1234-ios.apps.googleusercontent.com", "1234-web.apps.googleusercontent.com"]
        try await fixture.connect(1, clientID: clients[1])
        try await fixture.connect(2, clientID: "9999-ios.apps.googleusercontent.com")
        await fixture.post(Self.about(.tokensRevoked), audiences: ["9999", clients[0]])
        #expect(try await fixture.grant(1).reason == .tokensRevoked)
        let other = try await fixture.grant(2)
        #expect(other.state == .active && other.refreshToken != nil && other.dueAt == fixture.time.now)
        #expect(fixture.lines.securityEvents == ["tokens_revoked ambiguous 2 0"])
    }

    @Test("The time of the last event is kept, at most once an hour")
    func received() async throws {
        let begin = fixture.time.now
        let time = NotedTime.lastSecurityEvent
        #expect(try await time.read(from: fixture.store) == nil)
        await fixture.post(Self.about(.sessionsRevoked))
        #expect(try await time.read(from: fixture.store) == begin)
        try await time.record(begin + .seconds(3599), in: fixture.store)
        #expect(try await time.read(from: fixture.store) == begin)
        try await time.record(begin + .seconds(3600), in: fixture.store)
        #expect(try await time.read(from: fixture.store) == begin + .seconds(3600))
    }

    @Test("A token is recognised by its first 16 characters and by its double hash", arguments: [false, true])
    func tokenRevoked(byHash: Bool) async throws {
        let token = "1//0e0123456789abcdef"
        try await fixture.connect(1, refreshToken: token)
        try await fixture.connect(2)
        let hash = Base64URL.encode(Digest.sha512(Digest.sha512(Array(token.utf8))))
        let standard = hash.replacing("-", with: "+").replacing("_", with: "/") + "=="
        let name = byHash ? SecurityEvent.TokenName.doubleHash(standard) : .prefix(String(token.prefix(16)))
        await fixture.post(SecurityEvent(kind: .tokenRevoked(name)))
        let grant = try await fixture.grant(1)
        #expect(grant.state == .disconnected && grant.reason == .tokenRevoked && grant.refreshToken == nil)
        #expect(try await fixture.grant(2).state == .active)
        #expect(fixture.lines.securityEvents == ["token_revoked applied 1 0"])
    }

    @Test("A prefix of several tokens does not end their grants: each grant is probed")
    func ambiguousToken() async throws {
        for number: Int64 in [1, 2] { try await fixture.connect(number, refreshToken: "1//0e0123456789ab-\(number)") }
        try await fixture.connect(3)
        await fixture.post(SecurityEvent(kind: .tokenRevoked(.prefix("1//0e0123456789a"))))
        for number: Int64 in [1, 2] {
            let grant = try await fixture.grant(number)
            #expect(grant.state == .active && grant.refreshToken != nil && grant.dueAt == fixture.time.now)
        }
        #expect(try await fixture.grant(3).dueAt != fixture.time.now)
        #expect(fixture.lines.securityEvents == ["token_revoked ambiguous 2 0"])
    }

    @Test(
        "An unknown token or account changes nothing",
        arguments: [
            (SecurityEvent(kind: .tokenRevoked(.prefix("1//0e-unknown-to"))), "token_revoked"),
            (SecurityEvent(kind: .tokenRevoked(.prefix("1//0e"))), "token_revoked"),
            (SecurityEvent(kind: .tokenRevoked(.doubleHash("no hash"))), "token_revoked"),
            (SecurityEvent(kind: .tokensRevoked, googleUserID: "unknown"), "tokens_revoked"),
            (SecurityEvent(kind: .sessionsRevoked, googleUserID: "unknown"), "sessions_revoked"),
            (SecurityEvent(kind: .accountDisabled(reason: nil), googleUserID: "unknown"), "account_disabled"),
        ]
    )
    func unmatched(event: SecurityEvent, kind: String) async throws {
        try await fixture.connect(1)
        try await fixture.startSessions(2, of: "user-1")
        let before = try await fixture.grant(1)
        #expect(await fixture.post(event).status == 202)
        #expect(try await fixture.grant(1) == before)
        #expect(try await fixture.endSessions(of: "user-1") == 2)
        #expect(fixture.lines.securityEvents == ["\(kind) unmatched 0 0"])
    }

    @Test("sessions-revoked ends the sessions of users that sign in with the account or connected it")
    func sessionsRevoked() async throws {
        try await fixture.connect(1)
        try await fixture.startSessions(2, of: "user-1")
        try await fixture.startSessions(3, of: "signed in", account: SecurityEventFixture.account)
        try await fixture.startSessions(1, of: "other user", account: "another")
        let before = try await fixture.grant(1)
        await fixture.post(Self.about(.sessionsRevoked))
        #expect(try await fixture.grant(1) == before)
        #expect(fixture.lines.securityEvents == ["sessions_revoked applied 0 5"])
        #expect(try await fixture.endSessions(of: "user-1") == 0)
        #expect(try await fixture.endSessions(of: "signed in") == 0)
        #expect(try await fixture.endSessions(of: "other user") == 1)
    }

    @Test("sessions-revoked ends the sessions of both users whose ids differ in their bytes alone")
    func sessionsOfAlikeUsers() async throws {
        let users = ["caf\u{e9}", "cafe\u{301}"]
        for (number, user) in users.enumerated() {
            try await fixture.connect(Int64(number), userID: user)
            try await fixture.startSessions(1, of: user)
        }
        await fixture.post(Self.about(.sessionsRevoked))
        #expect(fixture.lines.securityEvents == ["sessions_revoked applied 0 2"])
        for user in users { #expect(try await fixture.endSessions(of: user) == 0) }
    }

    @Test("account-disabled suspends the grant and ends the sessions; account-enabled probes the grant immediately")
    func accountDisabledAndEnabled() async throws {
        try await fixture.connect(1)
        try await fixture.startSessions(1, of: "user-1")
        await fixture.post(Self.about(.accountDisabled(reason: "hijacking")))
        let suspended = try await fixture.grant(1)
        #expect(suspended.state == .suspended && suspended.reason == .accountDisabled)
        #expect(suspended.refreshToken != nil)
        #expect(suspended.dueAt == fixture.time.now + .seconds(86_400))
        fixture.time.advance(by: .seconds(3600))
        await fixture.post(Self.about(.accountEnabled), id: "later")
        #expect(try await fixture.grant(1).dueAt == fixture.time.now)
        #expect(fixture.lines.securityEvents == ["account_disabled applied 1 1", "account_enabled applied 1 0"])
        _ = await fixture.engine.runLoopIteration()
        await fixture.google.waitForRequest()
        #expect(await fixture.engine.stop(within: .seconds(5)) == UnstoredResults())
        #expect(try await fixture.grant(1).state == .active)
    }

    @Test("account-disabled leaves ended grants unchanged")
    func accountDisabledAfterEnd() async throws {
        try await fixture.connect(1)
        await fixture.post(Self.about(.tokensRevoked))
        let over = try await fixture.grant(1)
        await fixture.post(Self.about(.accountDisabled(reason: nil)), Self.about(.accountEnabled), id: "later")
        #expect(try await fixture.grant(1) == over)
    }

    @Test(
        "Events without an effect are recorded",
        arguments: [SecurityEvent.Kind.credentialChangeRequired, .verification(state: "x"), .other]
    )
    func recorded(kind: SecurityEvent.Kind) async throws {
        try await fixture.connect(1)
        try await fixture.startSessions(1, of: "user-1")
        let before = try await fixture.grant(1)
        let event = Self.about(kind)
        #expect(await fixture.post(event).status == 202)
        #expect(try await fixture.grant(1) == before)
        #expect(try await fixture.endSessions(of: "user-1") == 1)
        #expect(fixture.lines.securityEvents == ["\(event.code) recorded 0 0"])
    }

    @Test("A repeated token is accepted and changes nothing")
    func repeated() async throws {
        try await fixture.connect(1)
        await fixture.post(Self.about(.tokensRevoked))
        try await fixture.connect(1, age: .zero)
        let reconnected = try await fixture.grant(1)
        #expect(await fixture.post(Self.about(.tokensRevoked)).status == 202)
        #expect(try await fixture.grant(1) == reconnected)
        #expect(fixture.lines.securityEvents == ["tokens_revoked applied 1 0", "token repeated 0 0"])
        #expect(fixture.counters.lifetime.securityEvents == ["tokens_revoked": 1])
    }

    @Test("An event from before the user's reconnect only probes the grant", arguments: [false, true])
    func outdated(hasTimeOfEvent: Bool) async throws {
        try await fixture.connect(1)
        fixture.time.advance(by: .seconds(5))
        let then = fixture.time.now
        fixture.time.advance(by: .seconds(60))
        try await fixture.connect(1, age: .zero)
        fixture.time.advance(by: .seconds(60))
        await fixture.post(
            Self.about(.tokensRevoked),
            issuedAt: hasTimeOfEvent ? nil : then,
            happenedAt: hasTimeOfEvent ? then : nil
        )
        let grant = try await fixture.grant(1)
        #expect(grant.state == .active && grant.refreshToken != nil && grant.dueAt == fixture.time.now)
        #expect(fixture.lines.securityEvents == ["tokens_revoked outdated 1 0"])
        await fixture.post(Self.about(.tokensRevoked), id: "newer", happenedAt: fixture.time.now)
        #expect(try await fixture.grant(1).state == .disconnected)
    }

    @Test(
        "An event issued soon after a reconnect may be about the former tokens: the new token is kept and probed",
        arguments: [
            SecurityEventReceiverTests.about(.tokensRevoked),
            SecurityEventReceiverTests.about(.accountDisabled(reason: nil)),
            SecurityEvent(kind: .tokenRevoked(.prefix("1//0e-after-the-"))),
        ]
    )
    func issuedSoonAfterReconnect(event: SecurityEvent) async throws {
        try await fixture.connect(1)
        fixture.time.advance(by: .seconds(5))
        try await fixture.connect(1, refreshToken: "1//0e-after-the-disconnect", age: .zero)
        fixture.time.advance(by: .seconds(15))
        await fixture.post(event)
        let grant = try await fixture.grant(1)
        #expect(grant.state == .active && grant.refreshToken != nil && grant.dueAt == fixture.time.now)
        #expect(fixture.lines.securityEvents.first?.contains(" outdated 1 ") ?? false)
    }

    @Test(
        "Within 15 minutes after a connection an event without its own time is probed, and later it is trusted",
        arguments: [(15 * 60, true), (15 * 60 + 1, false)]
    )
    func limitOfDelay(seconds: Int, isProbed: Bool) async throws {
        try await fixture.connect(1, age: .seconds(seconds))
        await fixture.post(Self.about(.tokensRevoked))
        #expect(try await fixture.grant(1).state == (isProbed ? .active : .disconnected))
    }

    @Test("A clock that runs an hour behind Google's does not shorten the 15 minutes")
    func slowClock() async throws {
        try await fixture.connect(1, age: .seconds(20))
        await fixture.post(Self.about(.tokensRevoked), issuedAt: fixture.time.now + .seconds(3600))
        #expect(try await fixture.grant(1).state == .active)
    }

    @Test("A grant without a connection in its history counts as connected at its creation")
    func connectionWithoutHistory() async throws {
        let (time, vault) = (fixture.time, fixture.vault)
        let id = GrantID(rawValue: 1)
        let incoming = IncomingTokens(
            clientID: "client",
            owner: Grant.Owner(googleUserID: SecurityEventFixture.account),
            refreshToken: try vault.seal(refreshToken: Secret("1//0e-imported"), for: id)
        )
        try await fixture.store.transact { transaction in
            let (grant, _) = Grant.connected(id: id, userID: "u", incoming: incoming, dueAt: time.now, at: time.now)
            try transaction.insert(grant)
        }
        time.advance(by: .seconds(60))
        await fixture.post(Self.about(.tokensRevoked))
        #expect(try await fixture.grant(1).refreshToken != nil)
    }

    @Test("Google's answer decides about a grant that an event probes", arguments: [false, true])
    func googleDecides(isRevoked: Bool) async throws {
        try await fixture.connect(1, age: .seconds(20))
        await fixture.post(Self.about(.tokensRevoked))
        if isRevoked { await fixture.google.refuse() }
        _ = await fixture.engine.runLoopIteration()
        await fixture.google.waitForRequest()
        #expect(await fixture.engine.stop(within: .seconds(5)) == UnstoredResults())
        let grant = try await fixture.grant(1)
        #expect(grant.state == (isRevoked ? .disconnected : .active))
        #expect(grant.reason == (isRevoked ? .invalidGrant : .none))
    }

    @Test("A replayed token whose id was deleted has no effect")
    func replayedAfterDeletion() async throws {
        try await fixture.connect(1)
        try await fixture.startSessions(2, of: "user-1")
        fixture.time.advance(by: .seconds(5))
        let happenedAt = fixture.time.now
        fixture.time.advance(by: .seconds(61 * 86_400))
        let before = try await fixture.grant(1)
        #expect(await fixture.post(Self.about(.accountDisabled(reason: nil)), issuedAt: happenedAt).status == 202)
        #expect(try await fixture.grant(1) == before)
        #expect(try await fixture.endSessions(of: "user-1") == 2)
        #expect(fixture.lines.securityEvents == ["account_disabled outdated 0 0"])
    }

    @Test("An event in the second of the connection is trusted")
    func sameSecond() async throws {
        fixture.time.advance(by: .milliseconds(700))
        try await fixture.connect(1, age: .zero)
        let second = Timestamp(secondsSince1970: fixture.time.now.milliseconds / 1000)
        await fixture.post(Self.about(.tokensRevoked), happenedAt: second)
        #expect(try await fixture.grant(1).state == .disconnected)
    }

    @Test("A hash identifies the stored token itself, even if the app sent the token again after the event")
    func hashOfTokenSentAgain() async throws {
        let happenedAt = fixture.time.now
        fixture.time.advance(by: .seconds(60))
        let token = "1//0e0123456789abcdef"
        try await fixture.connect(1, refreshToken: token, age: .zero)
        let hash = Base64URL.encode(Digest.sha512(Digest.sha512(Array(token.utf8))))
        await fixture.post(SecurityEvent(kind: .tokenRevoked(.doubleHash(hash))), issuedAt: happenedAt)
        #expect(try await fixture.grant(1).state == .disconnected)
    }

    @Test("A refresh in flight does not revive a grant that an event has ended since")
    func raceWithRefresh() async throws {
        try await fixture.connect(1)
        fixture.time.advance(by: .seconds(3001))
        await fixture.google.hold()
        _ = await fixture.engine.runLoopIteration()
        await fixture.google.waitForRequest()
        await fixture.post(Self.about(.tokensRevoked))
        await fixture.google.release()
        #expect(await fixture.engine.stop(within: .seconds(5)) == UnstoredResults())
        let grant = try await fixture.grant(1)
        #expect(grant.state == .disconnected && grant.reason == .tokensRevoked)
        #expect(grant.refreshToken == nil && grant.accessToken == nil)
        #expect(fixture.lines.lines(of: "refresh").map { $0["outcome"]?.string } == ["void"])
    }

    @Test("A refresh that was sent before its account was disabled keeps its tokens and leaves the grant suspended")
    func successBehindSuspension() async throws {
        try await fixture.connect(1)
        fixture.time.advance(by: .seconds(3001))
        await fixture.google.hold()
        _ = await fixture.engine.runLoopIteration()
        await fixture.google.waitForRequest()
        await fixture.post(Self.about(.accountDisabled(reason: nil)))
        let suspended = try await fixture.grant(1)
        fixture.time.advance(by: .seconds(1))
        await fixture.google.release()
        #expect(await fixture.engine.stop(within: .seconds(5)) == UnstoredResults())
        let grant = try await fixture.grant(1)
        #expect(grant.state == .suspended && grant.reason == .accountDisabled && grant.since == suspended.since)
        #expect(grant.dueAt == suspended.dueAt)
        #expect(try fixture.vault.openRefreshToken(of: grant)?.reveal() == "1//0e-late")
    }

    @Test("The probe of a suspended account that succeeds ends the suspension")
    func successOfProbe() async throws {
        try await fixture.connect(1)
        await fixture.post(Self.about(.accountDisabled(reason: nil)))
        fixture.time.advance(by: .seconds(60))
        await fixture.post(Self.about(.accountEnabled), id: "enabled")
        _ = await fixture.engine.runLoopIteration()
        await fixture.google.waitForRequest()
        #expect(await fixture.engine.stop(within: .seconds(5)) == UnstoredResults())
        #expect(try await fixture.grant(1).state == .active)
    }

    @Test("A probe does not count if the account is disabled again while it is in flight")
    func disabledAgainDuringProbe() async throws {
        try await fixture.connect(1)
        await fixture.post(Self.about(.accountDisabled(reason: nil)))
        fixture.time.advance(by: .seconds(60))
        await fixture.post(Self.about(.accountEnabled), id: "enabled")
        await fixture.google.hold()
        _ = await fixture.engine.runLoopIteration()
        await fixture.google.waitForRequest()
        fixture.time.advance(by: .seconds(1))
        await fixture.post(Self.about(.accountDisabled(reason: nil)), id: "again")
        await fixture.google.release()
        #expect(await fixture.engine.stop(within: .seconds(5)) == UnstoredResults())
        #expect(try await fixture.grant(1).state == .suspended)
    }

    @Test("All events of one token are stored, or none")
    func allOrNothing() async throws {
        try await fixture.connect(1)
        await fixture.store.close()
        let response = await fixture.post(Self.about(.tokensRevoked), Self.about(.sessionsRevoked))
        #expect(response.status == 503)
        #expect(response.headers.contains { $0.name == "Retry-After" && $0.value == "5" })
        #expect(fixture.lines.securityEvents.isEmpty)
    }

    @Test("The response to an invalid token is 400 with the body of RFC 8935")
    func invalid() async throws {
        let response = await fixture.refuse(.invalid(.key, "not signed"))
        #expect(response.status == 400)
        #expect(response.headers.contains { $0.name == "Content-Type" && $0.value == "application/json" })
        let body = try #require(JSONValue.object(in: response.body))
        #expect(body == .object(["err": .string("invalid_key"), "description": .string("not signed")]))
        #expect(fixture.lines.securityEvents.isEmpty)
    }

    @Test(
        "While a token cannot be verified, Google is asked to deliver it again",
        arguments: [(10_000, "10"), (1, "1"), (0, "1")]
    )
    func unavailable(milliseconds: Int, retryAfter: String) async throws {
        let response = await fixture.refuse(.unavailable(retryAfter: .milliseconds(milliseconds)))
        #expect(response.status == 503)
        #expect(response.headers.contains { $0.name == "Retry-After" && $0.value == retryAfter })
    }

    @Test("No log line contains the event's user or its id")
    func logsWithoutPersonalData() async throws {
        try await fixture.connect(1)
        await fixture.post(Self.about(.tokensRevoked), id: "jti-that-is-secret")
        for line in fixture.lines.lines(of: "security_event") + fixture.lines.lines(of: "state") {
            #expect(
                !"\(line)".contains("jti-that-is-secret") && !"\(line)".contains("\"\(SecurityEventFixture.account)\"")
            )
        }
    }
}
