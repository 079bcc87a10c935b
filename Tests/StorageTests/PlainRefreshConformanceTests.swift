import TestSupport
import Testing

@testable import Base
@testable import Storage

/// The stores that take plain refreshes keep the same promises about them.
@Suite("A plain refresh is stored only for a grant that is as it was claimed", .timeLimit(.minutes(10)))
struct PlainRefreshConformanceTests {
    private let span: Duration = .seconds(30)
    private let now = start + .seconds(5)

    /// Calls `body` with each store that takes plain refreshes, and two claimed grants of different clients.
    private func withClaims(
        of kind: StoreKind,
        _ body: (any Store, ManualTime, [Grant]) async throws -> Void
    ) async throws {
        try await kind.withStore(isSharedByWorkers: true) { store, time in
            guard store.isSharedByWorkers else { return }
            try await store.add(try Sample.grants(1...2))
            let ids = (1...2).map { GrantID(rawValue: $0) }
            try await body(store, time, try await store.claim(ids, dueBy: nil, owner: "a", for: span))
        }
    }

    private func refreshed(_ grant: Grant, token: String = "new") throws -> PlainRefresh {
        var refreshed = grant
        refreshed.setLease(nil)
        let tokens = RefreshedTokens(accessToken: try Sample.accessToken(token, obtainedAt: now))
        _ = refreshed.refreshed(tokens, at: now) { _ in now + .seconds(3000) }
        return PlainRefresh(claimed: grant, refreshed: refreshed, secretFingerprint: .max)
    }

    private func successes(of client: String, in store: any Store) async throws -> [UncountedSuccesses] {
        try await store.transact { try $0.takeUncountedSuccesses(of: client) }
    }

    @Test("Its tokens and due time are stored, its lease ends, and it is counted once", arguments: StoreKind.allCases)
    func stored(kind: StoreKind) async throws {
        try await withClaims(of: kind) { store, _, grants in
            let refreshes = try grants.map { try refreshed($0) }
            let stored = try await store.storePlain(refreshes, at: now)
            #expect(stored == Set(grants.map(\.id)))
            for refresh in refreshes { #expect(try await store.grant(refresh.claimed.id) == refresh.refreshed) }
            let due = try await store.allDue(by: now + .seconds(3000))
            let next = now + .seconds(3000)
            #expect(due.map(\.dueAt) == [next, next])
            for client in ["client 0", "client 1"] {
                let expected = [UncountedSuccesses(at: now, count: 1, secretFingerprint: .max)]
                #expect(try await successes(of: client, in: store) == expected)
                #expect(try await successes(of: client, in: store).isEmpty)
            }
            #expect(try await store.storePlain(refreshes, at: now).isEmpty)
            #expect(try await successes(of: "client 0", in: store).isEmpty)
        }
    }

    @Test("Columns that a refresh seldom changes are stored too", arguments: StoreKind.allCases)
    func wholeGrant(kind: StoreKind) async throws {
        try await withClaims(of: kind) { store, _, grants in
            var first = try refreshed(grants[0]).refreshed
            _ = first.rotate(to: try Sample.refreshToken("rotated", key: Sample.otherKey), at: now)
            let refreshes = [
                PlainRefresh(claimed: grants[0], refreshed: first, secretFingerprint: 0), try refreshed(grants[1]),
            ]
            #expect(try await store.storePlain(refreshes, at: now).count == 2)
            for refresh in refreshes { #expect(try await store.grant(refresh.claimed.id) == refresh.refreshed) }
        }
    }

    @Test("A renewed lease is the same claim", arguments: StoreKind.allCases)
    func renewed(kind: StoreKind) async throws {
        try await withClaims(of: kind) { store, time, grants in
            time.advance(by: .seconds(10))
            let claims = Dictionary(uniqueKeysWithValues: try grants.map { ($0.id, try #require($0.lease?.claim)) })
            #expect(try await store.renew(claims, for: span).count == 2)
            #expect(try await store.storePlain(try grants.map { try refreshed($0) }, at: now).count == 2)
        }
    }

    @Test("A grant that a statement about many grants has changed is left as it is", arguments: StoreKind.allCases)
    func changedWithOthers(kind: StoreKind) async throws {
        try await withClaims(of: kind) { store, time, grants in
            try await store.transact { transaction in
                try transaction.insert(User(id: "other", createdAt: now))
                try transaction.move(user: "user 1", to: "other", at: now)
            }
            try await store.change(grants[1].id) { $0.retry(reason: .invalidGrantUnconfirmed, dueAt: now, at: now) }
            time.advance(by: span)
            let doubted = try await store.claim([grants[1].id], dueBy: nil, owner: "b", for: span)
            #expect(try await store.restartDoubts(at: now + .seconds(9), confirmingAt: now + .seconds(99)).count == 1)
            let claimed = [grants[0]] + doubted
            #expect(claimed.count == 2)
            #expect(try await store.storePlain(try claimed.map { try refreshed($0) }, at: now).isEmpty)
        }
    }

    @Test("A grant that was changed, released or claimed again since is left as it is", arguments: StoreKind.allCases)
    func changed(kind: StoreKind) async throws {
        try await withClaims(of: kind) { store, time, grants in
            try await store.change(grants[0].id) { $0.disconnect(reason: .userRequest, at: now) }
            let ended = try #require(try await store.grant(grants[0].id))
            try await store.release([grants[1].id: try #require(grants[1].lease?.claim)])
            let free = try #require(try await store.grant(grants[1].id))
            let refreshes = try grants.map { try refreshed($0) }
            #expect(try await store.storePlain(refreshes, at: now).isEmpty)
            #expect(try await store.grant(grants[0].id) == ended)
            #expect(try await store.grant(grants[1].id) == free)

            time.advance(by: span)
            let again = try await store.claim([grants[1].id], dueBy: nil, owner: "b", for: span)
            #expect(again.count == 1)
            #expect(try await store.storePlain(refreshes, at: now).isEmpty)
            #expect(try await store.grant(grants[1].id) == again.first)
            #expect(try await successes(of: "client 1", in: store).isEmpty)
            #expect(try await store.storePlain(try again.map { try refreshed($0) }, at: now).count == 1)
        }
    }

    @Test("A transaction that fails leaves the successes uncounted", arguments: StoreKind.allCases)
    func failedTransaction(kind: StoreKind) async throws {
        struct Failed: Error {}
        try await withClaims(of: kind) { store, _, grants in
            _ = try await store.storePlain(try grants.map { try refreshed($0) }, at: now)
            await #expect(throws: Failed.self) {
                try await store.transact { transaction in
                    _ = try transaction.takeUncountedSuccesses(of: "client 0")
                    throw Failed()
                }
            }
            #expect(try await successes(of: "client 0", in: store).count == 1)
        }
    }

    @Test("Transactions at the same time neither lose its token nor their own change", arguments: StoreKind.allCases)
    func races(kind: StoreKind) async throws {
        try await withClaims(of: kind) { store, _, first in
            try await store.release(Dictionary(uniqueKeysWithValues: first.map { ($0.id, $0.lease?.claim ?? 0) }))
            let ids = first.map(\.id)
            var together = 0
            // PostgreSQL takes a second to end a deadlock, which the order of the locks may cause.
            for round in 1...20 {
                let grants = try await store.claim(ids, dueBy: nil, owner: "a", for: span)
                #expect(grants.count == 2)
                let at = now + .seconds(round)
                let refreshes = try grants.map { try refreshed($0, token: "token \(round)") }
                async let stored = store.storePlain(refreshes, at: at)
                async let changed: Void = store.transact { transaction in
                    // Read by another column than the id, and in the other order.
                    for user in ["user 2", "user 1"] {
                        var grant = try #require(try transaction.grant(ofUser: user))
                        grant.suspect(since: at)
                        try transaction.update(grant)
                    }
                }
                let (taken, _) = try await (stored, changed)
                for grant in grants {
                    let now = try #require(try await store.grant(grant.id))
                    #expect(now.suspectedSince == at, "round \(round)")
                    let hasToken = now.accessToken?.sealed == (try Sample.sealed("token \(round)"))
                    #expect(hasToken == taken.contains(grant.id), "round \(round)")
                }
                together += taken.count
                let left = grants.filter { !taken.contains($0.id) }
                try await store.release(Dictionary(uniqueKeysWithValues: left.map { ($0.id, $0.lease?.claim ?? 0) }))
            }
            #expect(together > 0)
        }
    }
}
