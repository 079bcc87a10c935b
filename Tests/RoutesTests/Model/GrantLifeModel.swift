import Crypto
import Storage
import TestSupport

@testable import Base
@testable import GoogleOAuth
@testable import Routes
@testable import Scheduler

/// One user's grant under random events, compared with a simple model of the expected state.
///
/// The routes, the rules of refreshes and those of security events are the real ones. Refreshes are claimed in one step
/// and answered in a later one, so that answers arrive late and in any order.
final class GrantLifeModel {
    /// A violated expectation, with the steps that led to it.
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    private struct InFlightRefresh {
        let claim: RefreshClaim
        let sent: String?
        let isRevocation: Bool
    }

    private struct PendingEvent {
        let event: SecurityEvent
        let account: String
        let happenedAt: Timestamp
        let issuedAt: Timestamp
        /// The refresh token that the event names by its hash.
        let namedToken: String?
    }

    private struct Snapshot {
        let grant: Grant?
        let token: String?
        let events: Int
    }

    private let fixture: AccountFixture
    private let random: SeededRandom
    private let rules = RefreshRules(maxRate: 100)
    private var steps: [String] = []
    private var inFlight: [InFlightRefresh] = []
    private var pendingEvents: [PendingEvent] = []
    private var user = "u0"
    private var account = "g-1"
    private var numbers = 0
    /// The refresh token that must be stored; `nil` if the model does not know it.
    private var expected: String?
    /// `true` from the end of the grant by its user until the next connection.
    private var isEnded = false
    private var connectedAt: Timestamp?

    init(seed: UInt64) throws {
        fixture = try AccountFixture(signInsPerMinute: 60_000_000, writesPerMinute: 60_000_000)
        random = SeededRandom(seed: seed)
    }

    func run(_ count: Int) async throws {
        for _ in 0..<count {
            // At least a second, so that the whole seconds of events distinguish any two steps.
            fixture.time.advance(by: .seconds(1 + pick(pick(2) == 0 ? 5 : 1200)))
            let before = try await snapshot()
            try await step(before)
            try await checkState(before, try await snapshot())
        }
    }

    // MARK: Steps

    private func step(_ before: Snapshot) async throws {
        switch pick(16) {
        case 0...2: try await connect(withRefreshToken: pick(3) > 0, switching: pick(6) == 0, before)
        case 3: try await disconnect()
        case 4...7: try await claim(before)
        case 8...11: try await answer(before)
        case 12: try await createEvent(before)
        case 13, 14: try await deliverEvent(before)
        default: pick(8) == 0 ? try await deleteUser() : try await recall(before)
        }
    }

    private func connect(withRefreshToken: Bool, switching: Bool, _ before: Snapshot) async throws {
        numbers += 1
        if switching { account = account == "g-1" ? "g-2" : "g-1" }
        let (access, refresh) = ("ya29.\(numbers)", withRefreshToken ? "1//refresh-token-\(numbers)" : nil)
        note("connect \(account) \(refresh ?? "without a refresh token")")
        fixture.google.setAccount(access, FakeGoogle.Account(id: account, email: "\(account)@gmail.com"))
        let response = try await fixture.connect(access, refreshToken: refresh, user: user)
        try expect(response.status == 201, "the connection was refused: \(response.status)")
        let after = try await snapshot()
        let keeps = before.grant.map { !switching && $0.reason != .userRequest } ?? false
        try expect(after.token == refresh ?? (keeps ? before.token : nil), "another refresh token is stored")
        try expect(after.grant?.state == .active, "a new connection is not active")
        (expected, isEnded, connectedAt) = (after.token, false, fixture.time.now)
    }

    private func disconnect() async throws {
        note("the user disconnects")
        let response = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: fixture.token(ofUser: user))
        try expect(response.status == 200, "the disconnection was refused: \(response.status)")
        (expected, isEnded) = (nil, true)
    }

    private func deleteUser() async throws {
        note("the user is deleted")
        let response = try await fixture.send("DELETE", "/v1/user/me", token: fixture.token(ofUser: user))
        try expect(response.status == 200, "the deletion was refused: \(response.status)")
        if let grant = try await fixture.grant(ofUser: user) {
            try expect(!grant.state.isConnected, "a deleted user's grant is connected")
        }
        numbers += 1
        (user, expected, isEnded, connectedAt) = ("u\(numbers)", nil, false, nil)
    }

    private func claim(_ before: Snapshot) async throws {
        guard let id = before.grant?.id,
            let grant = try await fixture.store.claim([id], dueBy: nil, owner: "w", for: .seconds(45)).first,
            let lease = grant.lease
        else { return }
        note("claim \(before.token ?? "nothing") at generation \(grant.generation)")
        let claim = RefreshClaim(
            grant: id,
            clientID: grant.clientID,
            number: lease.claim,
            generation: grant.generation,
            lastAttemptAt: grant.lastAttemptAt
        )
        inFlight.append(
            InFlightRefresh(claim: claim, sent: before.token, isRevocation: grant.revocationAskedAt != nil)
        )
    }

    private func answer(_ before: Snapshot) async throws {
        guard !inFlight.isEmpty else { return }
        let refresh = inFlight.remove(at: pick(inFlight.count))
        numbers += 1
        let rotated = pick(2) == 0 ? "1//refresh-token-\(numbers)" : nil
        let answer = try answer(to: refresh, rotated: rotated)
        let result = RefreshResult(claim: refresh.claim, answer: answer)
        note("answer \(result.code) to \(refresh.sent ?? "nothing"), rotated \(rotated ?? "not")")
        let (rules, now, jitter) = (rules, fixture.time.now, random.nextUnit())
        let storedState = try await fixture.store.transact { transaction -> GrantState? in
            guard let grant = try transaction.grant(refresh.claim.grant) else { return nil }
            let context = DecisionContext(
                result: result,
                grant: grant,
                health: ClientHealth(epoch: transaction.leaseTime.epoch),
                now: now,
                instant: transaction.leaseTime.instant,
                jitter: jitter
            )
            let decision = rules.decide(context)
            try transaction.store(decision, about: grant, at: now)
            return decision.grant?.state
        }
        guard refresh.claim.grant == before.grant?.id else {
            // The grant of a user who was deleted since the claim.
            try expect(storedState.map { !$0.isConnected } ?? true, "an answer revived a deleted user's grant")
            return
        }
        let after = try await snapshot()
        let isCurrent = refresh.sent == before.token
        if isCurrent, let rotated, after.token == rotated, expected != nil { expected = rotated }
        if !isCurrent, before.grant?.state.isConnected == true {
            try expect(after.grant?.state == before.grant?.state, "an answer to a former token changed the state")
        }
    }

    private func answer(to refresh: InFlightRefresh, rotated: String?) throws -> RefreshResult.Answer {
        if refresh.isRevocation { return .revocation(failure: pick(2) == 0 ? nil : .unavailable(code: "connect")) }
        guard refresh.sent != nil else { return .withoutRefreshToken }
        let id = refresh.claim.grant
        let successor = try rotated.map { try fixture.vault.seal(refreshToken: Secret($0), for: id) }
        switch pick(10) {
        case 0...3:
            let lifetime = Duration.seconds([30, 300, 3599][pick(3)])
            let token = Grant.AccessToken(
                sealed: try fixture.vault.seal(accessToken: Secret("ya29.refreshed"), for: id),
                obtainedAt: fixture.time.now,
                expiresAt: fixture.time.now + lifetime
            )
            return .granted(RefreshedTokens(accessToken: token, rotated: successor))
        case 4: return .flawed(code: "flawed_answer", rotated: successor)
        case 5: return .failed(.signInRequired(code: "invalid_rapt"), retryAfter: nil)
        case 6: return .failed(.blocked(code: "policy_enforced"), retryAfter: nil)
        case 7: return .failed(.noAnswer(code: "timeout"), retryAfter: nil)
        case 8: return .unreadable(.malformed)
        default: return .failed(.invalidGrant, retryAfter: nil)
        }
    }

    private func recall(_ before: Snapshot) async throws {
        guard let id = before.grant?.id else { return }
        note("recall")
        let now = fixture.time.now
        try await fixture.store.transact { transaction in
            guard var grant = try transaction.grant(id) else { return }
            let events = grant.recall(confirmAt: now + .seconds(300), at: now)
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
        }
    }

    // MARK: Security events

    /// Creates an event at Google, which is delivered in a later step.
    private func createEvent(_ before: Snapshot) async throws {
        let now = fixture.time.now
        let token = before.token
        let kinds: [(SecurityEvent.Kind, String?)] = [
            (.tokensRevoked, nil), (.accountDisabled(reason: nil), nil), (.accountEnabled, nil),
            (.tokenRevoked(.prefix(String((token ?? "1//none").prefix(16)))), nil),
            (.tokenRevoked(.doubleHash(Self.doubleHash(of: token ?? "none"))), token),
        ]
        let (kind, namedToken) = kinds[pick(kinds.count)]
        let event = SecurityEvent(kind: kind, googleUserID: account)
        note("at Google: \(event.code)")
        let issuedAt = now + .seconds(pick(2) == 0 ? pick(20) : pick(900))
        pendingEvents.append(
            PendingEvent(event: event, account: account, happenedAt: now, issuedAt: issuedAt, namedToken: namedToken)
        )
    }

    private func deliverEvent(_ before: Snapshot) async throws {
        let now = fixture.time.now
        guard let index = pendingEvents.firstIndex(where: { $0.issuedAt <= now }) else { return }
        let event = pendingEvents.remove(at: index)
        numbers += 1
        let token = SecurityEventToken(
            id: "jti-\(numbers)",
            audiences: [FakeGoogle.clientID],
            issuedAt: event.issuedAt,
            happenedAt: pick(4) == 0 ? event.happenedAt : nil,
            events: [event.event]
        )
        note("delivery of \(event.event.code), \(token.happenedAt == nil ? "without" : "with") its time")
        try await fixture.store.transact { transaction in
            _ = try SecurityEventApplier(transaction: transaction, token: token, now: now).apply(event.event)
        }
        let after = try await snapshot()
        let isOlder = connectedAt.map { $0 > event.happenedAt } ?? false
        if isOlder, event.namedToken == nil || event.namedToken != before.token {
            try expect(after.token == before.token, "an event from before the connection deleted the token")
            try expect(after.grant?.state == before.grant?.state, "an event from before the connection ended it")
        } else if after.token == nil, before.token != nil {
            (expected, isEnded) = (nil, true)
        }
    }

    private static func doubleHash(of token: String) -> String {
        Base64URL.encode(Digest.sha512(Digest.sha512(Array(token.utf8))))
    }

    // MARK: Expectations

    private func checkState(_ before: Snapshot, _ after: Snapshot) async throws {
        guard let grant = after.grant else { return }
        if let expected {
            try expect(after.token == expected, "\(after.token ?? "nothing") is stored, not \(expected)")
        }
        try expect(!(isEnded && grant.state.isConnected), "connected again without new tokens")
        if grant.state.isConnected, after.token == nil {
            let end = grant.accessToken?.expiresAt ?? fixture.time.now
            let isDueInTime = grant.dueAt.map { $0 <= max(end, fixture.time.now) } ?? false
            try expect(isDueInTime, "connected without any usable token")
        }
        guard let former = before.grant, former.id == grant.id else { return }
        try expect(grant.generation >= former.generation, "the generation decreased")
        if grant.state != former.state {
            let last = try await fixture.store.events(of: grant.id, atMost: 1).first
            try expect(after.events > before.events && last?.to == grant.state, "a change of state without an event")
        }
    }

    private func snapshot() async throws -> Snapshot {
        let grant = try await fixture.grant(ofUser: user)
        guard let grant else { return Snapshot(grant: nil, token: nil, events: 0) }
        return Snapshot(
            grant: grant,
            token: try fixture.vault.openRefreshToken(of: grant)?.reveal(),
            events: try await fixture.store.events(of: grant.id, atMost: 1000).count
        )
    }

    private func pick(_ count: Int) -> Int { Int(random.nextBits() % UInt64(count)) }

    private func note(_ step: String) { steps.append("\(fixture.time.now.milliseconds / 1000 % 1_000_000) s: \(step)") }

    private func expect(_ condition: Bool, _ message: String) throws {
        guard !condition else { return }
        throw Violation(description: "\(message)\n\(steps.suffix(25).joined(separator: "\n"))")
    }
}
