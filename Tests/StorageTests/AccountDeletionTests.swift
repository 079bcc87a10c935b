import Base
import Crypto
import TestSupport
import Testing

@testable import Storage

@Suite("A deleted user leaves a tombstone, which is removed later", .timeLimit(.minutes(10)))
struct AccountDeletionTests {
    private let end = start + AccountDeletion.minimumTombstone
    private let account = Grant.Owner(googleUserID: "1", email: "a@b.c", name: "A")

    private func delete(_ user: String, in store: any Store) async throws -> AccountDeletion? {
        try await store.transact { try AccountDeletion.delete(user: user, in: $0, at: start) }
    }

    private func addUser(_ number: Int64, to store: any Store) async throws {
        var grant = try Sample.grant(number, owner: account)
        grant.scope = "openid email"
        try await store.transact { [grant] transaction in
            try transaction.insert(Sample.user(number))
            try transaction.insert(grant)
        }
    }

    @Test("Sessions and grant end, and only the id is kept", arguments: StoreKind.allCases)
    func deletion(kind: StoreKind) async throws {
        try await kind.withStore(keepsNotices: true) { store, _ in
            try await addUser(1, to: store)
            try await store.startSessions([Sample.session(1, user: "user 1"), Sample.session(2, user: "user 1")])
            let outcome = try await delete("user 1", in: store)
            #expect(outcome?.endedSessions == 2)
            #expect(try await store.stored(Sample.session(1, user: "user 1")) == nil)
            let tombstone = User(id: "user 1", createdAt: start, isActive: false, deletedUntil: end)
            #expect(try await store.user("user 1") == tombstone)
            let grant = try #require(try await store.grant(ofUser: "user 1"))
            #expect(outcome?.ends.map(\.grant) == [grant])
            #expect(grant.state == .disconnected && grant.reason == .userDeleted)
            #expect(grant.revocationAskedAt == start && grant.refreshToken != nil && grant.dueAt == start)
            #expect(grant.scope == "", "only what Google's revocation needs is kept until it is done")
            let notice = Notice.Content.connection(
                of: Notice.Subject(grant),
                from: .active,
                to: .disconnected,
                reason: .userDeleted
            )
            #expect(try await store.dueNotices(at: start, atMost: 10).map(\.content) == [notice])

            try await store.change(grant.id) { grant in
                grant.finishRevocation()
                return []
            }
            let wiped = try #require(try await store.grant(grant.id))
            #expect(wiped.owner == Grant.Owner() && wiped.refreshToken == nil && wiped.accessToken == nil)
        }
    }

    @Test("An unknown or deleted user is not deleted again", arguments: StoreKind.allCases)
    func missingUser(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            #expect(try await delete("missing", in: store) == nil)
            try await addUser(1, to: store)
            #expect(try await delete("user 1", in: store) != nil)
            #expect(try await delete("user 1", in: store) == nil)
        }
    }

    @Test(
        "A grant that shares its Google account is deleted at once and not revoked",
        arguments: StoreKind.allCases
    )
    func sharedAccount(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            // Both belong to "client 1".
            try await addUser(1, to: store)
            try await addUser(3, to: store)
            let grant = try await delete("user 1", in: store)?.ends.first?.grant
            #expect(grant?.revocationAskedAt == nil && grant?.refreshToken == nil && grant?.owner == Grant.Owner())
            #expect(grant?.scope == "")
            #expect(try await delete("user 3", in: store)?.ends.first?.grant.revocationAskedAt == start)
        }
    }

    @Test("The id is refused to grants while the tombstone exists", arguments: StoreKind.allCases)
    func refusal(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await addUser(1, to: store)
            try await store.transact { try $0.insert(User(id: "user 2", createdAt: start)) }
            _ = try await delete("user 1", in: store)
            _ = try await delete("user 2", in: store)
            let new = try Sample.grant(2)
            let inserted = await #expect(throws: StoreError.self) { try await store.add([new]) }
            #expect(inserted?.code == .conflict)
            let revived = await #expect(throws: StoreError.self) {
                try await store.change(GrantID(rawValue: 1)) { grant in
                    grant.reconnect(
                        IncomingTokens(clientID: "client"),
                        replacesRefreshToken: false,
                        discardsStored: false,
                        dueAt: start,
                        at: start
                    )
                }
            }
            #expect(revived?.code == .conflict)
            // Security events do not find it.
            try await store.transact { transaction throws in
                #expect(try transaction.grants(ofGoogleUser: "1").isEmpty)
            }
        }
    }

    @Test(
        "A clean-up removes the user, the grant and its history after the time and the revocation",
        arguments: StoreKind.allCases
    )
    func tombstones(kind: StoreKind) async throws {
        try await kind.withStore(keepsNotices: true) { store, _ in
            try await addUser(1, to: store)
            try await addUser(2, to: store)
            _ = try await delete("user 1", in: store)
            let id = GrantID(rawValue: 1)
            #expect(try await store.removeExpired(at: end - .milliseconds(1)) == RemovedCounts())
            #expect(try await store.removeExpired(at: end) == RemovedCounts())
            try await store.change(id) { grant in
                grant.finishRevocation()
                return []
            }
            #expect(try await store.removeExpired(at: end - .milliseconds(1)).users == 0)
            #expect(try await store.removeExpired(at: end).users == 1)
            #expect(try await store.user("user 1") == nil)
            #expect(try await store.grant(id) == nil)
            #expect(try await store.events(of: id, atMost: 10).isEmpty)
            #expect(try await store.user("user 2") != nil)
            #expect(try await store.dueNotices(at: end, atMost: 10).map(\.userID) == ["user 1"])
            #expect(try await store.grantStatistics(at: end).byState == [.active: 1])
            // The id is free again.
            try await addUser(1, to: store)
            #expect(try await store.grant(ofUser: "user 1")?.state == .active)
            #expect(try await store.grantStatistics(at: end).byState == [.active: 2])
        }
    }

    @Test("By a clock that might be ahead only successors of sessions are removed", arguments: StoreKind.allCases)
    func clockAhead(kind: StoreKind) async throws {
        try await kind.withStore(keepsNotices: true) { store, _ in
            try await addUser(1, to: store)
            _ = try await delete("user 1", in: store)
            var rotated = Sample.session(2)
            _ = try Sample.rotate(&rotated, 1, to: 2)
            try await store.startSessions([Sample.session(1), rotated])
            try await store.transact { transaction in
                _ = try transaction.recordOnce("old", at: start)
                try transaction.insert(try Sample.grant(2))
            }
            try await store.change(GrantID(rawValue: 2)) { $0.disconnect(reason: .invalidGrant, at: start) }
            var expected = RemovedCounts()
            expected.successors = 1
            let ahead = start + .seconds(86_400 * 400)
            #expect(try await store.removeExpired(by: start, at: ahead) == expected)
            // One that the clock ahead has stored is kept until it has ended by that clock.
            var later = Sample.session(3)
            _ = try Sample.rotate(&later, 1, to: 2, after: ahead - start)
            try await store.startSessions([later])
            #expect(try await store.removeExpired(by: start, at: ahead) == RemovedCounts())
        }
    }

    @Test("Expired rows are removed, and others stay", arguments: StoreKind.allCases)
    func expiry(kind: StoreKind) async throws {
        try await kind.withStore(keepsNotices: true) { store, _ in
            var rotated = Sample.session(2)
            _ = try Sample.rotate(&rotated, 1, to: 2)
            var fromTheFuture = Sample.session(3)
            _ = try Sample.rotate(&fromTheFuture, 1, to: 2, after: .seconds(3000))
            try await store.startSessions([Sample.session(1), rotated, fromTheFuture])
            try await store.transact { transaction in
                _ = try transaction.recordOnce("old", at: start)
                try transaction.insert(try Sample.grant(1))
            }
            try await store.change(GrantID(rawValue: 1)) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await store.noticeAccepted(try await store.notice(Notice.Key(userID: "user 1", number: 1)), at: start)

            var expected = RemovedCounts()
            expected.successors = 1
            #expect(try await store.removeExpired(at: start + .seconds(59)) == expected)
            #expect(try await store.stored(fromTheFuture)?.successor == nil)
            #expect(try await store.stored(rotated) == rotated)
            #expect(try await store.removeExpired(at: start + .seconds(60)) == expected)
            let wiped = try #require(try await store.stored(rotated))
            #expect(wiped.successor == nil && wiped.family == rotated.family)

            expected = RemovedCounts()
            expected.sessions = 1
            #expect(try await store.removeExpired(at: start + .seconds(3600)) == expected)
            #expect(try await store.stored(Sample.session(1)) == nil)

            #expect(try await store.removeExpired(at: start + Retention.notices).notices == 0)
            #expect(try await store.removeExpired(at: start + Retention.notices + .milliseconds(1)).notices == 1)
            #expect(try await store.replayNotices(since: start, ofUser: nil, at: end) == 0)
            #expect(try await store.removeExpired(at: start + Retention.identifiers).identifiers == 0)
            let last = try await store.removeExpired(at: start + Retention.identifiers + .milliseconds(1))
            #expect(last.identifiers == 1 && !last.mayHaveMore)
        }
    }

    @Test("The last hundred tokens that a user left are remembered until the deletion", arguments: StoreKind.allCases)
    func leftTokens(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await addUser(1, to: store)
            try await addUser(2, to: store)
            let grant = try Sample.grant(1)
            let sealed = try Sample.sealed("token")
            let tokens = (0...100).map { number in
                Grant.RefreshToken(sealed: sealed, marks: TokenMarks(of: Secret("1//\(number)")))
            }
            func remembered() async throws -> [Int] {
                try await store.transact { transaction in
                    try tokens.indices.filter { try transaction.hasLeft(tokens[$0], of: grant) }
                }
            }
            func leave(_ number: Int) async throws {
                try await store.transact { transaction in
                    for id: Int64 in 1...2 {
                        var grant = try Sample.grant(id)
                        grant.refreshToken = tokens[number]
                        try transaction.rememberRefreshToken(of: grant, at: start + .seconds(number))
                    }
                }
            }
            for number in 0..<100 { try await leave(number) }
            #expect(try await store.removeExpired(at: start + .seconds(10 * 365 * 86_400)) == RemovedCounts())
            #expect(try await remembered() == Array(0..<100))
            try await leave(100)
            #expect(try await remembered() == Array(1...100))
            _ = try await delete("user 1", in: store)
            #expect(try await remembered() == [])
            let other = try Sample.grant(2)
            let remembersOther = try await store.transact { try $0.hasLeft(tokens[100], of: other) }
            #expect(remembersOther)
        }
    }

    @Test("One clean-up removes a bounded number, and reports that there is more", arguments: StoreKind.allCases)
    func bound(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.transact { transaction in
                for number in 0..<(RemovedCounts.limit + 7) {
                    _ = try transaction.recordOnce("\(number)", at: start - Retention.identifiers * 2)
                }
            }
            let first = try await store.removeExpired(at: start)
            #expect(first.identifiers == RemovedCounts.limit && first.mayHaveMore)
            let second = try await store.removeExpired(at: start)
            #expect(second.identifiers == 7 && !second.mayHaveMore)
        }
    }
}
