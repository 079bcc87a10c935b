import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Every store replaces a claimed grant only while it is as it was claimed", .timeLimit(.minutes(10)))
struct ReplaceConformanceTests {
    private static let span: Duration = .seconds(30)
    private static let id = GrantID(rawValue: 1)

    /// A change between a claim and the commit of its result.
    enum Change: CaseIterable {
        case reconnected
        case disconnected
        case resealed
        case otherScope
        case rescheduled
        case expedited
        case probed
        case lastAttempt
        case released
        case claimedAgain

        func make(in store: any Store, _ time: ManualTime) async throws {
            switch self {
            case .reconnected:
                try await store.change(id) { grant in
                    let incoming = IncomingTokens(clientID: grant.clientID, owner: grant.owner)
                    return grant.reconnect(
                        incoming,
                        replacesRefreshToken: false,
                        discardsStored: false,
                        dueAt: start + .seconds(1),
                        at: start
                    )
                }
            case .disconnected: try await store.change(id) { $0.disconnectByRequest(revokes: true, at: start) }
            case .resealed:
                let sealed = try Sample.sealed("access 1", key: Sample.otherKey)
                try await store.change(id) { grant in
                    grant.reseal(refreshToken: nil, accessToken: sealed)
                    return []
                }
            case .otherScope:
                try await store.change(id) { grant in
                    grant.scope = "openid"
                    return []
                }
            case .rescheduled: _ = try await store.rescheduleGrantsStoredAfter(start - .seconds(1))
            case .expedited:
                _ = try await store.expediteRetries(ofClient: "client 1", dueBy: start, after: nil, atMost: 10)
            case .probed:
                try await store.change(id) { grant in
                    grant.makeDueNow(at: start - .seconds(1))
                    return []
                }
            case .lastAttempt:
                try await store.change(id) { grant in
                    grant.postpone(until: grant.dueAt ?? start, at: start + .milliseconds(1))
                    return []
                }
            case .released:
                let claim = try #require(try await store.grant(id)?.lease?.claim)
                try await store.release([id: claim])
            case .claimedAgain:
                time.advance(by: span)
                try #require(try await store.claim([id], dueBy: nil, owner: "b", for: span).count == 1)
            }
        }
    }

    /// Returns a claimed grant that an expedition may change.
    private func claimedGrant(in store: any Store) async throws -> Grant {
        try await store.add([try Sample.grant(1)])
        try await store.change(Self.id) { grant in
            grant.retry(reason: GrantReason(rawValue: "no_answer"), dueAt: start + .seconds(1), at: start)
        }
        return try #require(try await store.claim([Self.id], dueBy: nil, owner: "a", for: Self.span).first)
    }

    private func refreshed(_ claimed: Grant, token: String = "next") throws -> Grant {
        var grant = claimed
        let tokens = RefreshedTokens(
            accessToken: try Sample.accessToken(token),
            digest: [UInt8](repeating: 1, count: 16)
        )
        _ = grant.refreshed(tokens, at: start) { _ in start + .seconds(3000) }
        grant.setLease(nil)
        return grant
    }

    @Test(
        "An unchanged grant is replaced and released, also after its lease was renewed",
        arguments: StoreKind.allCases
    )
    func unchanged(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let claimed = try await claimedGrant(in: store)
            let next = try refreshed(claimed)
            time.advance(by: .seconds(10))
            try #require(try await store.renew([Self.id: claimed.lease?.claim ?? 0], for: Self.span) == [Self.id])
            #expect(try await store.transact { try $0.replace(claimed, by: next) })
            #expect(try await store.grant(Self.id) == next)
        }
    }

    @Test("Each of several refreshes is stored", arguments: StoreKind.allCases)
    func again(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add([try Sample.grant(1)])
            // The first also writes that the grant is proven; the others write what each refresh changes.
            for token in ["one", "two", "three"] {
                let claims = try await store.claim([Self.id], dueBy: nil, owner: "a", for: Self.span)
                let claimed = try #require(claims.first)
                let next = try refreshed(claimed, token: token)
                #expect(try await store.transact { try $0.replace(claimed, by: next) })
                #expect(try await store.grant(Self.id) == next)
            }
        }
    }

    @Test(
        "A grant that has changed since its claim is left as it is",
        arguments: StoreKind.allCases,
        Change.allCases
    )
    func changed(kind: StoreKind, change: Change) async throws {
        try await kind.withStore { store, time in
            let claimed = try await claimedGrant(in: store)
            try await change.make(in: store, time)
            let stored = try await store.grant(Self.id)
            let next = try refreshed(claimed)
            #expect(try await !store.transact { try $0.replace(claimed, by: next) })
            #expect(try await store.grant(Self.id) == stored)
        }
    }

    @Test("A grant that the same transaction has changed is left as it is", arguments: StoreKind.allCases)
    func changedInTransaction(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let claimed = try await claimedGrant(in: store)
            let next = try refreshed(claimed)
            let other = try refreshed(claimed, token: "other")
            let (first, second, stored) = try await store.transact { transaction in
                (
                    try transaction.replace(claimed, by: next),
                    try transaction.replace(claimed, by: other),
                    try transaction.grant(Self.id)
                )
            }
            #expect(first && !second && stored == next)
            #expect(try await store.grant(Self.id) == next)
        }
    }

    @Test("A grant that was read in the transaction is replaced like another", arguments: StoreKind.allCases)
    func readBefore(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let claimed = try await claimedGrant(in: store)
            let next = try refreshed(claimed)
            let (isReplaced, stored) = try await store.transact { transaction in
                _ = try transaction.grant(Self.id)
                return (try transaction.replace(claimed, by: next), try transaction.grant(Self.id))
            }
            #expect(isReplaced && stored == next)
            #expect(try await store.grant(Self.id) == next)
        }
    }

    @Test("A grant that does not exist is not replaced", arguments: StoreKind.allCases)
    func missing(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var claimed = try Sample.grant(1)
            var lease = Lease(owner: "a", claim: 7, epoch: "this boot", until: BootInstant(milliseconds: 1))
            lease.revision = 0
            claimed.setLease(lease)
            let next = try refreshed(claimed)
            let stored = claimed
            #expect(try await !store.transact { try $0.replace(stored, by: next) })
            #expect(try await store.grant(Self.id) == nil)
        }
    }
}
