import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Every store reads and adds many users at once as it does one by one", .timeLimit(.minutes(10)))
struct ImportConformanceTests {
    /// One é as a single character, and one as two: the same `String`, and different ids.
    private static let twins = ["caf\u{e9}", "cafe\u{301}"]

    private func additions() throws -> [NewGrant] {
        var grants = try Sample.grants(1...5)
        grants.append(try Sample.fullGrant(6, userID: Self.twins[0]))
        grants.append(try Sample.fullGrant(7, userID: Self.twins[1]))
        grants.append(try Sample.fullGrant(8, userID: "NUL \0"))
        var ended = try Sample.grant(9)
        ended.restore(state: .disconnected, reason: .userRequest, since: start)
        return (grants + [ended]).map { grant in
            var grant = grant
            grant.setLease(nil)
            let kinds: [GrantEvent.Kind] = grant.state == .active ? [.connected] : [.connected, .state]
            let events = kinds.map { kind in
                GrantEvent(
                    grant: grant.id,
                    at: start,
                    kind: kind,
                    from: kind == .connected ? nil : .active,
                    to: grant.state,
                    reason: grant.reason,
                    generation: grant.generation,
                    consentedAt: nil
                )
            }
            return NewGrant(grant: grant, events: events)
        }
    }

    @Test(
        "Grants that are added together are stored like those that are added one by one",
        arguments: StoreKind.allCases
    )
    func additions(kind: StoreKind) async throws {
        let additions = try additions()
        func stored(_ add: @escaping @Sendable (any StoreTransaction) throws -> Void) async throws -> StoredRows {
            var rows = StoredRows()
            try await kind.withStore(keepsNotices: true) { store, _ in
                // A user can be stored before the grant.
                try await store.transact { try $0.insert(User(id: "user 1", createdAt: start, name: "Ann")) }
                try await store.transact(add)
                rows = try await StoredRows(of: store)
            }
            return rows
        }
        let together = try await stored { try $0.insert(additions) }
        let oneByOne = try await stored { transaction in
            for addition in additions {
                try transaction.insert(addition.grant)
                for event in addition.events { try transaction.record(event) }
            }
        }
        #expect(together == oneByOne)
        #expect(together.grants.count == additions.count && together.notices == 1)
    }

    @Test("A grant that was added can be changed in the same transaction", arguments: StoreKind.allCases)
    func changedAtOnce(kind: StoreKind) async throws {
        let addition = try #require(try additions().first)
        try await kind.withStore { store, _ in
            try await store.transact { transaction in
                try transaction.insert([addition])
                var grant = try #require(try transaction.grant(ofUser: addition.grant.userID))
                let events = grant.disconnectByRequest(revokes: false, at: start)
                try transaction.update(grant)
                for event in events { try transaction.record(event) }
            }
            #expect(try await store.grant(addition.grant.id)?.state == .disconnected)
            #expect(try await store.events(of: addition.grant.id, atMost: 10).map(\.kind).last == .connected)
        }
    }

    @Test("A changed grant is not found by an id that differs only in its bytes", arguments: StoreKind.allCases)
    func twins(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add([try Sample.fullGrant(6, userID: Self.twins[0])])
            try await store.transact { transaction in
                var grant = try #require(try transaction.grant(ofUser: Self.twins[0]))
                _ = grant.disconnectByRequest(revokes: false, at: start)
                try transaction.update(grant)
                #expect(try transaction.grant(ofUser: Self.twins[0]) == grant)
                #expect(try transaction.grant(ofUser: Self.twins[1]) == nil)
            }
        }
    }

    @Test("Nothing is added if one of the users has a grant or was deleted", arguments: StoreKind.allCases)
    func conflicts(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add([try Sample.grant(3)])
            try await store.transact { transaction in
                try transaction.insert(User(id: "user 5", createdAt: start))
                _ = try AccountDeletion.delete(user: "user 5", in: transaction, at: start)
            }
            let all = try additions()
            for other in try [
                Sample.fullGrant(30, userID: "user 3"), Sample.fullGrant(3, userID: "other"), Sample.grant(5),
            ] {
                await #expect {
                    try await store.transact { try $0.insert([all[0], NewGrant(grant: other, events: [])]) }
                } throws: { ($0 as? StoreError)?.code == .conflict }
            }
            #expect(try await store.grants(after: nil, in: nil, atMost: 10).map(\.id.rawValue) == [3])
            #expect(try await store.user("user 1") == nil)
        }
    }

    @Test("The standings of users are what is stored of each", arguments: StoreKind.allCases)
    func standings(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let stored = try additions().filter { $0.grant.id.rawValue != 7 }
            try await store.transact { transaction in
                try transaction.insert(stored)
                _ = try AccountDeletion.delete(user: "user 2", in: transaction, at: start)
                for (user, delay) in [("gone", 7), (Self.twins[1], 8)] {
                    try transaction.recordDisconnect(ofUserWithoutGrant: user, at: start + .seconds(delay))
                }
                try transaction.insert(User(id: "empty", createdAt: start))
            }
            let users = stored.map(\.grant.userID) + Self.twins + ["gone", "empty", "unknown", "gone"]
            let standings = try await store.transact { transaction in
                let standings = try transaction.standings(ofUsers: users)
                for user in users {
                    let standing = standings[user]
                    let (grant, disconnectedAt) = (
                        try transaction.grant(ofUser: user), try transaction.disconnectTime(ofUserWithoutGrant: user)
                    )
                    #expect(standing.isDeleted == (user == "user 2"), "\(user)")
                    #expect(standing.isDeleted || standing.grants == [grant].compactMap(\.self), "\(user)")
                    #expect(standing.disconnectedAt == disconnectedAt, "\(user)")
                }
                return standings
            }
            #expect(standings["user 2"].grants.isEmpty)
            #expect(standings[Self.twins[0]].grants.first?.id.rawValue == 6 && standings[Self.twins[1]].grants.isEmpty)
            #expect(standings["NUL \0"].grants.first?.id.rawValue == 8)
            #expect(standings[Self.twins[1]].disconnectedAt == start + .seconds(8))
        }
    }

    @Test("Of several damaged grants, an error names that of the first user", arguments: StoreKind.allCases)
    func damaged(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(1...3))
            try await store.transact { transaction in
                _ = try (transaction as? any SQLTransaction)?.change([
                    SQLStatement(
                        SQLQuery("damage", sql: "UPDATE refresh_worker.grants SET refresh_token = $1 WHERE id > 1"),
                        .bytes([9])
                    )
                ])
            }
            await #expect {
                try await store.transact { _ = try $0.standings(ofUsers: ["user 1", "user 3", "user 2"]) }
            } throws: { "\($0)".contains("grant \(GrantID(rawValue: 3))") }
        }
    }
}

/// Everything that a store holds about grants and their users.
private struct StoredRows: Equatable {
    var users: [ArchiveRecord] = []
    var grants: [ArchiveRecord] = []
    var events: [ArchiveRecord] = []
    /// Their number: each has a random one.
    var notices = 0
    var counts: [GrantState: Int] = [:]

    init() {}

    init(of store: any Store) async throws {
        users = try await store.records(of: .user, after: nil, atMost: 100)
        grants = try await store.records(of: .grant, after: nil, atMost: 100)
        events = try await store.records(of: .event, after: nil, atMost: 100)
        notices = try await store.records(of: .notice, after: nil, atMost: 100).count
        counts = try await store.grantStatistics(at: start).byState
    }
}
