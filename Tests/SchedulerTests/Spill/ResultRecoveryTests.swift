import Crypto
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Storage

@Suite("Results of a former process")
struct ResultRecoveryTests {
    private let fixture: EngineFixture

    init() throws {
        fixture = try EngineFixture(seed: 80, rotates: true)
    }

    /// Returns the result of a worker that held the grant: an access token, and a rotated refresh token.
    private func result(_ account: Int, claim: Int64 = 5) async throws -> RefreshResult {
        let grant = try await fixture.grant(account)
        let tokens = RefreshedTokens(
            accessToken: Grant.AccessToken(
                sealed: try fixture.vault.seal(accessToken: Secret("access-\(account)"), for: grant.id),
                obtainedAt: fixture.time.now,
                expiresAt: fixture.time.now + .seconds(3600)
            ),
            rotated: try fixture.refreshToken(account, version: 1, for: grant.id)
        )
        let claim = RefreshClaim(
            grant: grant.id,
            clientID: grant.clientID,
            number: claim,
            generation: grant.generation,
            lastAttemptAt: grant.lastAttemptAt,
            refreshToken: grant.refreshToken
        )
        return RefreshResult(claim: claim, answer: .granted(tokens))
    }

    private func storedToken(_ account: Int) async throws -> String? {
        try fixture.vault.openRefreshToken(of: try await fixture.grant(account))?.reveal()
    }

    private func recover(_ results: [RefreshResult]) async throws -> ResultRecovery {
        try await .recover(results, into: fixture.store, maxRate: 200, time: fixture.time, random: fixture.random)
    }

    @Test("are stored, and storing them again changes nothing")
    func twice() async throws {
        try await fixture.add(0..<250)
        var results: [RefreshResult] = []
        for account in 0..<250 { results.append(try await result(account)) }
        let first = try await recover(results)
        #expect(first.stored == 250)
        let grants = try await fixture.grants()
        for account in 0..<250 { #expect(try await storedToken(account) == "refresh-\(account)-1") }
        fixture.time.advance(by: .seconds(60))
        let second = try await recover(results)
        #expect(second.stored + second.outdated == 250)
        #expect(try await fixture.grants() == grants)
    }

    @Test("count although an answer to the token that they spent has ended the grant since")
    func endedMeanwhile() async throws {
        try await fixture.add(0..<1)
        let late = try await result(0)
        try await fixture.change(0) { $0.disconnect(reason: .invalidGrant, at: start) }
        #expect(try await recover([late]).stored == 1)
        #expect(try await storedToken(0) == "refresh-0-1")
        #expect(try await fixture.grant(0).state == .active)
    }

    @Test("count although the user has reconnected since without a refresh token")
    func reconnectedWithoutToken() async throws {
        try await fixture.add(0..<1)
        let sealed = try await result(0).sealed(with: fixture.vault)
        let late = try RefreshResult.open(try #require(sealed), with: fixture.vault)
        try await fixture.change(0) { $0.disconnect(reason: .invalidGrant, at: start) }
        try await fixture.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: EngineFixture.clientID),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: start,
                at: start
            )
        }
        #expect(try await recover([late]).stored == 1)
        #expect(try await storedToken(0) == "refresh-0-1")
    }

    @Test("do not overwrite tokens that a user brought since")
    func reconnected() async throws {
        try await fixture.add(0..<1)
        let late = try await result(0)
        let fresh = try fixture.refreshToken(0, version: 9, for: try await fixture.grant(0).id)
        try await fixture.change(0) { grant in
            grant.reconnect(
                IncomingTokens(clientID: EngineFixture.clientID, refreshToken: fresh),
                replacesRefreshToken: true,
                discardsStored: false,
                dueAt: start,
                at: start
            )
        }
        #expect(try await recover([late]).outdated == 1)
        #expect(try await storedToken(0) == "refresh-0-9")
    }

    /// An event of a grant between the restore of a backup and the recovery.
    enum AfterRestore: CaseIterable {
        case nothing, answerWithoutRotation, refusal, oldEnd, signIn, signInToSameVersion, end, deletion, success
    }

    @Test("are stored in an older backup, unless something newer is known there", arguments: AfterRestore.allCases)
    func olderBackup(event: AfterRestore) async throws {
        try await fixture.add(0..<1)
        if event == .oldEnd {
            try await fixture.change(0) { $0.disconnectByRequest(revokes: true, at: start) }
        }
        fixture.time.advance(by: .seconds(60))
        let original = try await result(0)
        var (claim, answer) = (original.claim, original.answer)
        let id = claim.grant
        claim.generation = event == .signInToSameVersion ? 2 : 6
        claim.refreshToken = try fixture.refreshToken(0, version: 7, for: id)
        if case .granted(var tokens) = answer {
            tokens.rotated =
                event == .answerWithoutRotation ? nil : try fixture.refreshToken(0, version: 8, for: id)
            answer = .granted(tokens)
        }
        let late = RefreshResult(claim: claim, answer: answer)
        let fresh = try fixture.refreshToken(0, version: 9, for: id)
        fixture.time.advance(by: .seconds(60))
        let now = fixture.time.now
        let brought = RefreshedTokens(accessToken: try Sample.accessToken(obtainedAt: now), rotated: fresh)
        try await fixture.change(0) { grant in
            switch event {
            case .nothing, .answerWithoutRotation, .oldEnd: return []
            case .refusal: return grant.disconnect(reason: .invalidGrant, at: now)
            case .signIn, .signInToSameVersion:
                return grant.reconnect(
                    IncomingTokens(clientID: EngineFixture.clientID, refreshToken: fresh),
                    replacesRefreshToken: true,
                    discardsStored: false,
                    dueAt: now,
                    at: now
                )
            case .end: return grant.disconnectByRequest(revokes: true, at: now)
            case .deletion: return grant.disconnectByRequest(revokes: true, reason: .userDeleted, at: now)
            case .success: return grant.refreshed(brought, at: now) { _ in now + .seconds(3000) }
            }
        }
        let summary = try await recover([late])
        let grant = try await fixture.grant(0)
        let token = try await storedToken(0)
        switch event {
        case .nothing, .refusal, .oldEnd:
            #expect(summary.stored == 1 && token == "refresh-0-8")
            #expect(grant.state == .active && grant.revocationAskedAt == nil && grant.generation == 7)
            #expect(try await recover([late]).stored == 1)
            #expect(try await fixture.grant(0) == grant)
        case .answerWithoutRotation:
            #expect(summary.stored == 1 && token == "refresh-0-7" && grant.generation == 6)
        case .signIn, .signInToSameVersion, .success:
            #expect(summary.outdated == 1 && token == "refresh-0-9")
        case .end, .deletion:
            #expect(summary.outdated == 1 && grant.state == .disconnected)
        }
    }

    @Test("of grants that are not stored are counted")
    func unknown() async throws {
        try await fixture.add(0..<1)
        let stray = try await result(0).changingClaim { $0.grant = GrantID(rawValue: 1) }
        let summary = try await recover([stray])
        #expect(summary.unknown == 1 && summary.stored == 0)
    }

    @Test("do not affect the health of the endpoint")
    func health() async throws {
        try await fixture.add(0..<1)
        try await fixture.store.database.transact { transaction in
            var health = ClientHealth(epoch: transaction.leaseTime.epoch)
            _ = health.breaker.clientFault("invalid_client", at: transaction.leaseTime.instant, jitter: 0.5)
            try transaction.setClientHealth(health.stored, of: EngineFixture.clientID)
        }
        let before = try await fixture.store.clientHealth()
        _ = try await recover([try await result(0)])
        #expect(try await fixture.store.clientHealth() == before)
    }
}
