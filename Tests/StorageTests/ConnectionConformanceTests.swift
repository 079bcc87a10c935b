import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Every store keeps several connections of a user", .timeLimit(.minutes(10)))
struct ConnectionConformanceTests {
    private static let work = ConnectionID("work") ?? .default

    /// Returns the grant with this number of the user "user 1".
    private func grant(
        _ number: Int64,
        _ connection: ConnectionID = .default,
        account: String? = nil,
        labels: [String: String] = [:]
    ) throws -> Grant {
        var incoming = IncomingTokens(
            clientID: "client",
            owner: Grant.Owner(googleUserID: account, email: account.map { "\($0)@gmail.com" }),
            refreshToken: try Sample.refreshToken("refresh \(number)")
        )
        incoming.labels = ConnectionLabels(labels)
        return Grant.connected(
            id: GrantID(rawValue: number),
            userID: "user 1",
            connection: connection,
            incoming: incoming,
            dueAt: start,
            at: start
        ).grant
    }

    @Test("They are read by id, or all with the default one first", arguments: StoreKind.allCases)
    func reading(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let first = try grant(9, account: "g-1")
            let second = try grant(1, Self.work, account: "g-2", labels: ["tenant": "acme", "ü": "\u{1f600}"])
            #expect(try await store.hasOtherConnections == false)
            try await store.add([first, second, try Sample.grant(2)])
            #expect(try await store.hasOtherConnections)
            #expect(try await store.grants(ofUser: "user 1") == [first, second])
            #expect(try await store.grant(ofUser: "user 1", connection: .default) == first)
            #expect(try await store.grant(ofUser: "user 1", connection: Self.work) == second)
            #expect(try await store.grant(ofUser: "user 2", connection: Self.work) == nil)
            let all = try await store.transact { try $0.grants(ofUser: "user 1") }
            #expect(all == [first, second])
            let named = try await store.transact { try $0.grant(ofUser: "user 1", connection: Self.work) }
            #expect(named == second)
            let ofAccount = try await store.transact { try $0.grants(ofGoogleUser: "g-2") }
            #expect(ofAccount == [second])
            let standings = try await store.transact { try $0.standings(ofUsers: ["user 1"]) }
            #expect(standings["user 1"].grants.count == 2)
        }
    }

    @Test("Labels change without the rest, and can be removed", arguments: StoreKind.allCases)
    func labels(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var expected = try grant(1, labels: ["tenant": "acme"])
            try await store.add([expected])
            for labels in [ConnectionLabels(["cohort": "7"]) ?? .none, .none] {
                expected.labels = labels
                let changed = expected
                try await store.transact { try $0.update(changed) }
                #expect(try await store.grant(changed.id) == changed)
            }
        }
    }

    @Test("A user has each id and each account once", arguments: StoreKind.allCases)
    func unique(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add([try grant(1, account: "g-1")])
            for duplicate in [try grant(2, account: "g-2"), try grant(3, Self.work, account: "g-1")] {
                let error = await #expect(throws: StoreError.self) { try await store.add([duplicate]) }
                #expect(error?.code == .conflict)
            }
            // Another user can have the account.
            let other = try Sample.grant(5, owner: Grant.Owner(googleUserID: "g-1"))
            try await store.add([other])
            #expect(try await store.grants(ofUser: "user 1").count == 1)
        }
    }

    @Test(
        "An account moves from one to another in one transaction, whichever has the lower id",
        arguments: StoreKind.allCases,
        [1, 9]
    )
    func moved(kind: StoreKind, id: Int64) async throws {
        try await kind.withStore(keepsNotices: true) { store, _ in
            let taker = try grant(5, account: "g-1")
            let holder = try grant(id, Self.work, account: "g-2", labels: ["tenant": "acme"])
            try await store.add([taker, holder])
            try await store.transact { transaction in
                var left = try #require(try transaction.grant(holder.id))
                let events = left.leaveAccount(at: start)
                try transaction.update(left)
                var taken = try #require(try transaction.grant(taker.id))
                taken.owner.googleUserID = "g-2"
                try transaction.update(taken)
                for event in events { try transaction.record(event) }
            }
            let stored = try await store.grants(ofUser: "user 1")
            #expect(stored.map(\.owner.googleUserID) == ["g-2", nil])
            #expect(stored[1].state == .disconnected && stored[1].reason == .accountMoved)
            #expect(stored[1].refreshToken == nil && stored[1].revocationAskedAt == nil)
            let notice = try #require(try await store.dueNotices(at: start, atMost: 2).first)
            let subject = Notice.Subject(grant: holder.id, connection: Self.work, labels: holder.labels)
            #expect(
                notice.content == .connection(of: subject, from: .active, to: .disconnected, reason: .accountMoved)
            )
        }
    }

    @Test(
        "In one transaction a connection takes the account that another has left for a third one",
        arguments: StoreKind.allCases,
        [[1, 2], [2, 1]] as [[Int64]]
    )
    func movedOn(kind: StoreKind, ids: [Int64]) async throws {
        try await kind.withStore { store, _ in
            let taker = try grant(ids[0], account: "g-1")
            let holder = try grant(ids[1], Self.work, account: "g-2")
            try await store.add([taker, holder])
            try await store.transact { transaction in
                for (id, account) in [(holder.id, "g-3"), (taker.id, "g-2")] {
                    var grant = try #require(try transaction.grant(id))
                    grant.owner.googleUserID = account
                    try transaction.update(grant)
                }
            }
            #expect(try await store.grants(ofUser: "user 1").map(\.owner.googleUserID) == ["g-2", "g-3"])
        }
    }

    @Test("All end with their user, and go with the tombstone", arguments: StoreKind.allCases)
    func deletion(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add([try grant(1, account: "g-1"), try grant(2, Self.work, account: "g-2")])
            let deletion = try await store.transact { try AccountDeletion.delete(user: "user 1", in: $0, at: start) }
            #expect(deletion?.ends.map(\.grant.id.rawValue) == [1, 2])
            #expect(deletion?.ends.allSatisfy { $0.grant.revocationAskedAt == start } == true)
            for id in [1, 2] as [Int64] {
                try await store.transact { transaction in
                    var grant = try #require(try transaction.grant(GrantID(rawValue: id)))
                    grant.finishRevocation()
                    try transaction.update(grant)
                }
            }
            let end = start + .seconds(2 * 86_400)
            #expect(try await store.removeExpired(by: end, at: end).users == 1)
            #expect(try await store.grants(ofUser: "user 1").isEmpty)
        }
    }

    @Test("A user is forgotten with the last connection", arguments: StoreKind.allCases)
    func forgetting(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let living = try grant(1, account: "g-1")
            var ended = try grant(2, Self.work, account: "g-2", labels: ["tenant": "acme"])
            _ = ended.disconnect(reason: .invalidGrant, at: start)
            try await store.add([living, ended])
            try await store.transact { transaction in
                var user = try #require(try transaction.user("user 1"))
                user.email = "jane@example.com"
                try transaction.update(user)
            }
            let later = start + .seconds(86_400)
            try await store.forgetGrants(endedBefore: later, at: later)
            #expect(try await store.grant(ended.id)?.reason == .forgotten)
            #expect(try await store.user("user 1")?.email == "jane@example.com")
            try await store.change(living.id) { $0.disconnect(reason: .invalidGrant, at: later) }
            try await store.forgetGrants(endedBefore: later + .seconds(1), at: later + .seconds(1))
            #expect(try await store.user("user 1")?.email == nil)
        }
    }
}
