import Clocks
import GoogleOAuth
import RefreshEngine
import Secrets
import Store

@testable import AccountAPI

/// One user's grant under random events, next to a simple model of the expected state.
///
/// Routes and security events are the real ones. Refreshes are claimed in one step and answered in a later one, so that
/// answers arrive late and in any order.
final class GrantLifeModel {
    /// A violated expectation, with the steps that led to it.
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    private struct InFlightRefresh {
        let attempt: RefreshAttempt
        let sent: String?
        let isRevocation: Bool
    }

    private struct PendingEvent {
        let event: SecurityEvent
        let account: String
        let happenedAt: Timestamp
        let issuedAt: Timestamp
        /// The refresh token that the event names by its hash.
        let named: String?
    }

    private struct Picture {
        let grant: Grant?
        let token: String?
        let events: Int
    }

    private let fixture: AccountFixture
    private let random: SeededRandom
    private let rules = RefreshRules(maxRate: 100)
    private var steps: [String] = []
    private var flights: [InFlightRefresh] = []
    private var pending: [PendingEvent] = []
    private var user = "u0"
    private var account = "g-1"
    private var numbers = 0
    /// The refresh token that must be stored; `nil` if the model does not know it.
    private var expected: String?
    /// `true` from the user's end of the grant until tokens are brought again.
    private var isEnded = false
    private var connectedAt: Timestamp?

    init(seed: UInt64) throws {
        fixture = try AccountFixture(signInsPerMinute: 60_000_000, writesPerMinute: 60_000_000)
        random = SeededRandom(seed: seed)
    }

    func run(_ count: Int) async throws {
        for _ in 0..<count {
            // At least a second, so that the whole seconds of events tell any two steps apart.
            fixture.time.advance(by: .seconds(1 + pick(pick(2) == 0 ? 5 : 1200)))
            let before = try await picture()
            try await step(before)
            try await checkStanding(before, try await picture())
        }
    }

    // MARK: Steps

    private func step(_ before: Picture) async throws {
        switch pick(16) {
        case 0...2: try await connect(withRefreshToken: pick(3) > 0, switching: pick(6) == 0, before)
        case 3: try await disconnect()
        case 4...7: try await claim(before)
        case 8...11: try await answer(before)
        case 12: try await happen(before)
        case 13, 14: try await deliver(before)
        default: pick(8) == 0 ? try await deleteUser() : try await recall(before)
        }
    }

    private func connect(withRefreshToken: Bool, switching: Bool, _ before: Picture) async throws {
        numbers += 1
        if switching { account = account == "g-1" ? "g-2" : "g-1" }
        let (access, refresh) = ("ya29.\(numbers)", withRefreshToken ? "1//refresh-token-\(numbers)" : nil)
        note("connect \(account) \(refresh ?? "without a refresh token")")
        fixture.google.know(access, FakeGoogle.Account(id: account, email: "\(account)@gmail.com"))
        let answer = try await fixture.connect(access, refreshToken: refresh, user: user)
        try expect(answer.status == 201, "the connection was refused: \(answer.status)")
        let after = try await picture()
        let keeps = before.grant.map { !switching && $0.reason != .userRequest } ?? false
        try expect(after.token == refresh ?? (keeps ? before.token : nil), "another refresh token is stored")
        try expect(after.grant?.state == .active, "connected, and not active")
        (expected, isEnded, connectedAt) = (after.token, false, fixture.time.now)
    }

    private func disconnect() async throws {
        note("the user disconnects")
        let answer = try await fixture.ask("DELETE", "/v1/auth/gmail-tokens", token: fixture.token(ofUser: user))
        try expect(answer.status == 200, "the disconnection was refused: \(answer.status)")
        (expected, isEnded) = (nil, true)
    }

    private func deleteUser() async throws {
        note("the user is deleted")
        let answer = try await fixture.ask("DELETE", "/v1/user/me", token: fixture.token(ofUser: user))
        try expect(answer.status == 200, "the deletion was refused: \(answer.status)")
        if let grant = try await fixture.grant(ofUser: user) {
            try expect(!grant.state.isConnected, "a deleted user's grant is connected")
        }
        numbers += 1
        (user, expected, isEnded, connectedAt) = ("u\(numbers)", nil, false, nil)
    }

    private func claim(_ before: Picture) async throws {
        guard let id = before.grant?.id,
            let grant = try await fixture.store.claim([id], dueBy: nil, owner: "w", for: .seconds(45)).first,
            let lease = grant.lease
        else { return }
        note("claim \(before.token ?? "nothing") at generation \(grant.generation)")
        let attempt = RefreshAttempt(
            grant: id,
            clientID: grant.clientID,
            claim: lease.claim,
            generation: grant.generation,
            lastAttemptAt: grant.lastAttemptAt
        )
        flights.append(
            InFlightRefresh(attempt: attempt, sent: before.token, isRevocation: grant.revocationAskedAt != nil)
        )
    }

    private func answer(_ before: Picture) async throws {
        guard !flights.isEmpty else { return }
        let flight = flights.remove(at: pick(flights.count))
        numbers += 1
        let rotated = pick(2) == 0 ? "1//refresh-token-\(numbers)" : nil
        let answer = try answer(to: flight, rotated: rotated)
        let result = RefreshResult(attempt: flight.attempt, answer: answer)
        note("answer \(result.code) to \(flight.sent ?? "nothing"), rotated \(rotated ?? "not")")
        let (rules, now, unit) = (rules, fixture.time.now, random.nextUnit())
        let outcome = try await fixture.store.transact { transaction -> (Bool, GrantState)? in
            guard let grant = try transaction.grant(flight.attempt.grant) else { return nil }
            let context = DecisionContext(
                result: result,
                grant: grant,
                health: ClientHealth(epoch: transaction.leaseTime.epoch),
                now: now,
                instant: transaction.leaseTime.instant,
                unit: unit
            )
            let decision = rules.decide(context)
            guard let decided = decision.grant else { return nil }
            try transaction.update(decided)
            for event in decision.events { try transaction.record(event) }
            return (grant.state.isConnected, decided.state)
        }
        guard flight.attempt.grant == before.grant?.id else {
            // The grant of a user who was deleted since the claim.
            try expect(outcome.map { !$0.1.isConnected } ?? true, "an answer brought a deleted user's grant back")
            return
        }
        let after = try await picture()
        let isCurrent = flight.sent == before.token
        if isCurrent, let rotated, after.token == rotated, expected != nil { expected = rotated }
        if !isCurrent, before.grant?.state.isConnected == true {
            try expect(after.grant?.state == before.grant?.state, "an answer to a former token changed the state")
        }
    }

    private func answer(to flight: InFlightRefresh, rotated: String?) throws -> RefreshResult.Answer {
        if flight.isRevocation { return .revocation(failure: pick(2) == 0 ? nil : .unavailable(code: "connect")) }
        guard flight.sent != nil else { return .nothingToSend }
        let id = flight.attempt.grant
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
        case 5: return .refused(.signInRequired(code: "invalid_rapt"), retryAfter: nil)
        case 6: return .refused(.blocked(code: "policy_enforced"), retryAfter: nil)
        case 7: return .refused(.noAnswer(code: "timeout"), retryAfter: nil)
        case 8: return .unreadable(.malformed)
        default: return .refused(.invalidGrant, retryAfter: nil)
        }
    }

    private func recall(_ before: Picture) async throws {
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

    /// Makes something happen at Google; its event is delivered in a later step.
    private func happen(_ before: Picture) async throws {
        let now = fixture.time.now
        let token = before.token
        let kinds: [(SecurityEvent.Kind, String?)] = [
            (.tokensRevoked, nil), (.accountDisabled(reason: nil), nil), (.accountEnabled, nil),
            (.tokenRevoked(.prefix(String((token ?? "1//none").prefix(16)))), nil),
            (.tokenRevoked(.doubleHash(Self.doubleHash(of: token ?? "none"))), token),
        ]
        let (kind, named) = kinds[pick(kinds.count)]
        let event = SecurityEvent(kind, googleUserID: account)
        note("at Google: \(event.code)")
        let issuedAt = now + .seconds(pick(2) == 0 ? pick(20) : pick(900))
        pending.append(
            PendingEvent(event: event, account: account, happenedAt: now, issuedAt: issuedAt, named: named)
        )
    }

    private func deliver(_ before: Picture) async throws {
        let now = fixture.time.now
        guard let place = pending.firstIndex(where: { $0.issuedAt <= now }) else { return }
        let event = pending.remove(at: place)
        numbers += 1
        let token = SecurityEventToken(
            id: "jti-\(numbers)",
            issuedAt: event.issuedAt,
            happenedAt: pick(4) == 0 ? event.happenedAt : nil,
            events: [event.event]
        )
        note("delivery of \(event.event.code), \(token.happenedAt == nil ? "without" : "with") its time")
        try await fixture.store.transact { transaction in
            _ = try SecurityEventApplication(transaction: transaction, token: token, now: now).apply(event.event)
        }
        let after = try await picture()
        let isOlder = connectedAt.map { $0 > event.happenedAt } ?? false
        if isOlder, event.named == nil || event.named != before.token {
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

    private func checkStanding(_ before: Picture, _ after: Picture) async throws {
        guard let grant = after.grant else { return }
        if let expected {
            try expect(after.token == expected, "\(after.token ?? "nothing") is stored, not \(expected)")
        }
        try expect(!(isEnded && grant.state.isConnected), "connected again without new tokens")
        if grant.state.isConnected, after.token == nil {
            let end = grant.accessToken?.expiresAt ?? fixture.time.now
            let isEndedSoon = grant.dueAt.map { $0 <= max(end, fixture.time.now) } ?? false
            try expect(isEndedSoon, "connected without any usable token")
        }
        guard let former = before.grant, former.id == grant.id else { return }
        try expect(grant.generation >= former.generation, "the generation went back")
        if grant.state != former.state {
            let last = try await fixture.store.events(of: grant.id, atMost: 1).first
            try expect(after.events > before.events && last?.to == grant.state, "a change of state without an event")
        }
    }

    private func picture() async throws -> Picture {
        let grant = try await fixture.grant(ofUser: user)
        guard let grant else { return Picture(grant: nil, token: nil, events: 0) }
        return Picture(
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
