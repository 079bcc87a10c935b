import Base
import Crypto
import Testing

@testable import Storage

@Suite("The changes of a grant and its generation")
struct GrantLifeTests {
    private let later = start + .seconds(100)

    @Test("A reconnect with another refresh token raises the generation and resets the grant")
    func reconnectWithOtherToken() throws {
        var grant = try Sample.grant(1)
        _ = grant.refreshed(try success("first", at: start), at: start) { _ in later }
        _ = grant.disconnect(reason: .invalidGrant, at: start)
        let fence = grant.generation
        let token = try Sample.refreshToken("other")
        let events = grant.reconnect(
            IncomingTokens(clientID: "new client", refreshToken: token),
            replacesRefreshToken: true,
            discardsStored: false,
            dueAt: later,
            at: later
        )
        #expect(grant.generation == fence + 1)
        #expect(grant.refreshToken == token)
        #expect(grant.clientID == "new client")
        #expect(grant.state == .active && grant.reason == .none && grant.since == later)
        #expect(!grant.isProven)
        #expect(grant.dueAt == later)
        #expect(events.map(\.kind) == [.connected])
        #expect(events.map(\.from) == [.disconnected])
    }

    @Test("A reconnect without a refresh token keeps token and generation, and the later access token")
    func reconnectWithoutToken() throws {
        var grant = try Sample.grant(1)
        let fence = grant.generation
        let kept = grant.refreshToken
        let newer = try Sample.accessToken("newer", obtainedAt: later)
        for token in [newer, try Sample.accessToken("older", obtainedAt: start - .seconds(5))] {
            _ = grant.reconnect(
                IncomingTokens(clientID: "client", accessToken: token),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: later,
                at: later
            )
            #expect(grant.generation == fence)
            #expect(grant.refreshToken == kept)
            #expect(grant.accessToken == newer)
        }
    }

    @Test("A reconnect moves the due time of a refresh token that it keeps earlier, and never later")
    func reconnectedDueTime() throws {
        func dueTime(of grant: Grant, replaced: Bool = false, dueAt: Timestamp) throws -> Timestamp? {
            var grant = grant
            let refreshToken = replaced ? try Sample.refreshToken("other") : nil
            let accessToken = try Sample.accessToken("newer", obtainedAt: start)
            _ = grant.reconnect(
                IncomingTokens(clientID: "client", refreshToken: refreshToken, accessToken: accessToken),
                replacesRefreshToken: replaced,
                discardsStored: false,
                dueAt: dueAt,
                at: start
            )
            return grant.dueAt
        }
        // The server asked for a refresh by then.
        let grant = try Sample.grant(1, dueAt: start + .seconds(60))
        #expect(try dueTime(of: grant, dueAt: later) == start + .seconds(60))
        #expect(try dueTime(of: grant, dueAt: start) == start)
        #expect(try dueTime(of: grant, replaced: true, dueAt: later) == later)
        var ended = grant
        _ = ended.requireSignIn(reason: .invalidGrant, at: start)
        #expect(try dueTime(of: ended, dueAt: later) == later)
        var withoutRefreshToken = grant
        withoutRefreshToken.refreshToken = nil
        #expect(try dueTime(of: withoutRefreshToken, dueAt: later) == later)
    }

    @Test(
        "A security event deletes the tokens at once and raises the generation",
        arguments: [GrantState.active, .retrying, .suspended, .reauthRequired]
    )
    func endedByEvent(state: GrantState) throws {
        var grant = try Sample.grant(1)
        grant.restore(state: state, reason: .none, since: start)
        let fence = grant.generation
        let events = grant.disconnectByEvent(reason: .tokensRevoked, at: later)
        #expect(grant.state == .disconnected && grant.reason == .tokensRevoked && grant.since == later)
        #expect(grant.refreshToken == nil && grant.accessToken == nil)
        #expect(grant.generation == fence + 1)
        #expect(grant.dueAt == nil)
        #expect(events.map(\.from) == [state])
    }

    @Test("A security event about a disconnected grant deletes its tokens, and keeps its reason")
    func endedAgainByEvent() throws {
        var grant = try Sample.grant(1)
        _ = grant.disconnectByRequest(revokes: true, at: start)
        #expect(grant.refreshToken != nil)
        #expect(grant.disconnectByEvent(reason: .tokensRevoked, at: later).isEmpty)
        #expect(grant.reason == .userRequest && grant.since == start)
        #expect(grant.refreshToken == nil && grant.accessToken == nil)
        #expect(grant.revocationAskedAt == nil && grant.dueAt == nil)
        var lost = try Sample.grant(2)
        _ = lost.disconnect(reason: .invalidGrant, at: start)
        _ = lost.disconnectByEvent(reason: .tokensRevoked, at: later)
        #expect(lost.recall(confirmAt: later, at: later).isEmpty, "the grant has no refresh token left")
    }

    @Test("A probe is due now, unless the grant has ended or waits for a confirmation")
    func probes() throws {
        var suspended = try Sample.grant(1)
        _ = suspended.suspend(reason: .accountDisabled, probeAt: later + .seconds(86_400), at: start)
        suspended.makeDueNow(at: later)
        #expect(suspended.dueAt == later)
        var held = try Sample.grant(2)
        _ = held.retry(reason: .invalidGrantUnconfirmed, dueAt: later + .seconds(5), at: start)
        held.makeDueNow(at: later)
        #expect(held.dueAt == later + .seconds(5))
        var doubted = try Sample.grant(5)
        _ = doubted.suspend(reason: GrantReason(rawValue: "access_denied"), probeAt: later + .seconds(5), at: start)
        doubted.suspect(since: start)
        doubted.makeDueNow(at: later)
        #expect(doubted.dueAt == later + .seconds(5), "a suspended grant can be in doubt too")
        var over = try Sample.grant(3)
        _ = over.requireSignIn(reason: .noRefreshToken, at: start)
        over.makeDueNow(at: later)
        #expect(over.dueAt == nil)
        var early = try Sample.grant(4, dueAt: start)
        early.makeDueNow(at: later)
        #expect(early.dueAt == start)
    }

    @Test("Another account's tokens replace everything, including by missing values")
    func switchingAccounts() throws {
        var grant = try Sample.grant(1, owner: .init(googleUserID: "old", email: "old@example.com", name: "Old"))
        let fence = grant.generation
        let token = try Sample.accessToken("new", obtainedAt: start - .seconds(5))
        _ = grant.reconnect(
            IncomingTokens(clientID: "client", owner: .init(googleUserID: "new"), accessToken: token),
            replacesRefreshToken: false,
            discardsStored: true,
            dueAt: later,
            at: later
        )
        #expect(grant.generation == fence + 1)
        #expect(grant.refreshToken == nil)
        #expect(grant.accessToken == token)
        #expect(grant.owner == .init(googleUserID: "new"))
    }

    @Test("The refresh token of another account is kept for an import that corrects the account")
    func accountMismatch() throws {
        var grant = try Sample.grant(1, owner: .init(googleUserID: "wrong"))
        let token = try #require(grant.refreshToken)
        _ = grant.requireSignIn(reason: .accountMismatch, at: start)
        #expect(grant.refreshToken == token && grant.accessToken == nil && grant.dueAt == nil)
        _ = grant.reconnect(
            IncomingTokens(clientID: grant.clientID, owner: .init(googleUserID: "right"), refreshToken: token),
            replacesRefreshToken: false,
            discardsStored: true,
            dueAt: later,
            at: later
        )
        #expect(grant.state == .active && grant.refreshToken == token && !grant.isProven)
    }

    @Test("The refresh token of another account is never revoked at Google")
    func accountMismatchEnded() throws {
        var grant = try Sample.grant(1)
        _ = grant.requireSignIn(reason: .accountMismatch, at: start)
        _ = grant.disconnectByRequest(revokes: true, at: later)
        #expect(grant.refreshToken == nil && grant.revocationAskedAt == nil && grant.dueAt == nil)
    }

    @Test("A rotated refresh token raises the generation, and the grant stays proven")
    func rotation() throws {
        var grant = try Sample.grant(1)
        var tokens = try success("access", at: later)
        tokens.rotated = try Sample.refreshToken("rotated")
        let events = grant.refreshed(tokens, at: later) { _ in later }
        #expect(grant.generation == 2)
        #expect(grant.refreshToken == tokens.rotated)
        #expect(grant.isProven)
        #expect(grant.lastSuccessAt == later)
        #expect(events.map(\.kind) == [.rotated])

        let evenLater = later + .seconds(9)
        let tokensAgain = try success("next", at: evenLater)
        let next = grant.refreshed(tokensAgain, at: evenLater) { $0.accessToken?.expiresAt ?? start }
        #expect(grant.generation == 2)
        #expect(grant.refreshToken == tokens.rotated)
        #expect(next.isEmpty)
        #expect(grant.dueAt == evenLater + .seconds(3600))
    }

    @Test("Every end raises the generation and clears the due time")
    func endings() throws {
        let endings: [@Sendable (inout Grant, Timestamp) -> [GrantEvent]] = [
            { $0.disconnect(reason: .invalidGrant, at: $1) },
            { $0.requireSignIn(reason: .clientMismatch, at: $1) },
            { $0.disconnectByRequest(revokes: false, at: $1) },
        ]
        for end in endings {
            var grant = try Sample.grant(1)
            let events = end(&grant, later)
            #expect(grant.generation == 2)
            #expect(grant.dueAt == nil)
            #expect(grant.state.endsRefreshes)
            #expect(grant.since == later)
            #expect(events.map(\.to) == [grant.state])
        }
    }

    @Test("A revocation keeps the tokens until it is done, however often it is requested or postponed")
    func revocation() throws {
        var grant = try Sample.grant(1)
        _ = grant.disconnectByRequest(revokes: true, at: start)
        _ = grant.disconnectByRequest(revokes: true, at: later)
        grant.postponeRevocation(until: later + .seconds(5), at: later)
        #expect(grant.revocationAskedAt == start)
        #expect(grant.dueAt == later + .seconds(5))
        #expect(grant.refreshToken != nil && grant.accessToken != nil)
        grant.finishRevocation()
        #expect(grant.refreshToken == nil && grant.accessToken == nil)
        #expect(grant.dueAt == nil && grant.revocationAskedAt == nil)
        #expect(grant.state == .disconnected)
    }

    @Test("Only an end or a suspension by an answer of Google is recalled")
    func recalling() throws {
        var believed = try Sample.grant(1)
        _ = believed.disconnect(reason: .invalidGrant, at: start)
        let fence = believed.generation
        #expect(believed.recall(confirmAt: later, at: later).map(\.to) == [.retrying])
        #expect(believed.reason == .invalidGrantUnconfirmed)
        #expect(believed.dueAt == later)
        #expect(believed.generation == fence)

        var asked = try Sample.grant(2)
        _ = asked.disconnectByRequest(revokes: true, at: start)
        let before = asked
        #expect(asked.recall(confirmAt: later, at: later).isEmpty)
        #expect(asked == before)

        for reason in [GrantReason(rawValue: "invalid_rapt"), .clientMismatch, .accountMismatch, .accountDisabled] {
            var grants = [try Sample.grant(3), try Sample.grant(4)]
            _ = grants[0].requireSignIn(reason: reason, at: start)
            _ = grants[1].suspend(reason: reason, probeAt: later, at: start)
            for var grant in grants {
                let isRecalled = !grant.recall(confirmAt: later, at: later).isEmpty
                #expect(isRecalled == !GrantReason.givenByWorker.contains(reason))
                #expect(!isRecalled || grant.reason == .refusalUnconfirmed && grant.dueAt == later)
            }
        }
    }

    @Test("Failures are counted from the first of the row, and one success ends the row")
    func failures() throws {
        var grant = try Sample.grant(1)
        let network = GrantReason(rawValue: "network")
        #expect(grant.retry(reason: network, dueAt: later, at: start).map(\.to) == [.retrying])
        #expect(grant.retry(reason: network, dueAt: later, at: start + .seconds(5)).isEmpty)
        #expect(grant.failures == 2)
        #expect(grant.failingSince == start)
        #expect(grant.since == start)
        let events = grant.refreshed(try success("access", at: later), at: later) { _ in later }
        #expect(events.map(\.to) == [.active])
        #expect(grant.failures == 0)
        #expect(grant.failingSince == nil)
    }

    @Test("The order of scopes is not a change, another set is")
    func scopes() throws {
        var grant = try Sample.grant(1)
        var tokens = try success("access", at: later)
        tokens.scope = "email openid"
        #expect(grant.refreshed(tokens, at: later, due: { _ in later }).isEmpty)
        tokens.scope = "openid"
        #expect(grant.refreshed(tokens, at: later, due: { _ in later }).map(\.kind) == [.scopeChanged])
        #expect(grant.scope == "openid")
    }

    // MARK: The end of a consent

    /// Returns a grant whose consent ends after `days`, as the app says, and whose end is announced.
    private func announcedGrant(endingAfter days: Int64) throws -> Grant {
        var grant = try Sample.grant(1)
        grant.refreshToken?.expiresAt = start + .seconds(days * 86_400)
        grant.refreshToken?.isExpiryNoticed = true
        return grant
    }

    @Test(
        "Google's end of a consent wins, unless it differs by a minute or less, and a later one is announced again",
        arguments: [(0, false, true), (60, false, true), (61, true, false), (-60, false, true), (-61, true, true)]
            as [(Int64, Bool, Bool)]
    )
    func consentEnd(seconds: Int64, isWritten: Bool, isNoticed: Bool) throws {
        var grant = try announcedGrant(endingAfter: 7)
        let known = try #require(grant.refreshToken?.expiresAt)
        let end = known + .seconds(seconds)
        var tokens = try success("access", at: later)
        tokens.refreshTokenExpiresAt = end
        _ = grant.refreshed(tokens, at: later) { _ in later }
        #expect(grant.refreshToken?.expiresAt == (isWritten ? end : known))
        #expect(grant.refreshToken?.isExpiryNoticed == isNoticed)
    }

    @Test("An answer without an end leaves the known one, and one with an end gives it to a grant that had none")
    func absentConsentEnd() throws {
        var grant = try announcedGrant(endingAfter: 7)
        let known = grant.refreshToken
        _ = grant.refreshed(try success("access", at: later), at: later) { _ in later }
        #expect(grant.refreshToken == known)
        grant.refreshToken?.expiresAt = nil
        var tokens = try success("access", at: later)
        tokens.refreshTokenExpiresAt = later + .seconds(10)
        _ = grant.refreshed(tokens, at: later) { _ in later }
        #expect(grant.refreshToken?.expiresAt == later + .seconds(10))
    }

    @Test("A rotated refresh token has the end of its answer, or else that of the one before")
    func rotatedConsentEnd() throws {
        for end in [nil, start + .seconds(180 * 86_400)] {
            var grant = try announcedGrant(endingAfter: 7)
            let known = grant.refreshToken?.expiresAt
            var tokens = try success("access", at: later)
            tokens.rotated = try Sample.refreshToken("rotated", expiresAt: end)
            tokens.refreshTokenExpiresAt = end
            _ = grant.refreshed(tokens, at: later) { _ in later }
            #expect(grant.refreshToken?.expiresAt == end ?? known)
            #expect(grant.refreshToken?.isExpiryNoticed == (end == nil))
        }
    }

    private func success(_ text: String, at now: Timestamp) throws -> RefreshedTokens {
        RefreshedTokens(accessToken: try Sample.accessToken(text, obtainedAt: now))
    }
}
