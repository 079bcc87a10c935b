import Base
import Synchronization
import TestSupport
import Testing

@testable import Storage

@Suite("Ended grants are forgotten, with what identifies their users", .timeLimit(.minutes(10)))
struct ForgettingTests {
    private let cutoff = start + .seconds(100)
    private let now = start + .seconds(1000)
    private let account = Grant.Owner(googleUserID: "g", email: "a@b.c", name: "A", emailIsVerified: true)

    private func forget(in store: any Store, isDryRun: Bool = false) async throws -> [String] {
        let users = Mutex<[String]>([])
        try await store.forgetGrants(endedBefore: cutoff, isDryRun: isDryRun, at: now) { page in
            users.withLock { $0 += page.map(\.userID) }
        }
        return users.withLock { $0.sorted() }
    }

    /// Adds a user with a grant that `end` ends.
    private func add(
        _ number: Int64,
        to store: any Store,
        lastLogin: Timestamp? = start,
        end: @escaping @Sendable (inout Grant) -> [GrantEvent]
    ) async throws {
        let grant = try Sample.grant(number, owner: account)
        try await store.transact { transaction in
            try transaction.insert(Sample.user(number, lastLoginAt: lastLogin))
            try transaction.insert(grant)
        }
        try await store.change(grant.id, end)
    }

    @Test("Only the ids, the state and the history stay, and nothing happens twice", arguments: StoreKind.allCases)
    func forgotten(kind: StoreKind) async throws {
        try await kind.withStore(keepsNotices: true) { store, _ in
            try await add(1, to: store) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await add(2, to: store) { $0.requireSignIn(reason: .noRefreshToken, at: start) }
            let before = try await store.grantStatistics(at: now).byState
            #expect(before == [.disconnected: 1, .reauthRequired: 1])
            let notices = try await store.dueNotices(at: now, atMost: 10)
            #expect(try await forget(in: store, isDryRun: true) == ["user 1", "user 2"])
            #expect(try await store.user("user 1")?.email == "a@b.c", "a dry run changes nothing")
            #expect(try await store.grant(ofUser: "user 1")?.refreshToken != nil)

            #expect(try await forget(in: store) == ["user 1", "user 2"])
            for id in ["user 1", "user 2"] {
                let user = try #require(try await store.user(id))
                #expect(user.email == nil && user.name == nil && user.picture == nil)
                #expect(id == "user \(user.googleUserID ?? "")", "the same user comes back with the next sign-in")
                #expect(user.lastLoginAt == start)
                let grant = try #require(try await store.grant(ofUser: id))
                #expect(grant.state == .disconnected && grant.reason == .forgotten && grant.since == start)
                #expect(grant.owner == Grant.Owner() && grant.scope.isEmpty)
                #expect(grant.refreshToken == nil && grant.accessToken == nil && grant.dueAt == nil)
                let event = try #require(try await store.events(of: grant.id, atMost: 9).first)
                #expect(event.reason == .forgotten)
                #expect(event.from == (id == "user 1" ? .disconnected : .reauthRequired))
            }
            #expect(try await store.grantStatistics(at: now).byState == [.disconnected: 2])
            #expect(try await store.dueNotices(at: now, atMost: 10) == notices, "no notice is made")
            #expect(try await forget(in: store).isEmpty)
        }
    }

    @Test(
        "Grants that live, ended recently or are to be revoked stay, and users who are still there",
        arguments: StoreKind.allCases
    )
    func kept(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let cutoff = cutoff
            try await add(1, to: store) { _ in [] }
            try await add(2, to: store) { $0.disconnect(reason: .invalidGrant, at: cutoff) }
            try await add(3, to: store) { $0.disconnectByRequest(revokes: true, at: start) }
            try await add(4, to: store, lastLogin: cutoff) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await add(5, to: store) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await store.startSessions([Sample.session(1, user: "user 5")])
            try await add(6, to: store) { $0.suspend(reason: .accountDisabled, probeAt: start, at: start) }
            #expect(try await forget(in: store).isEmpty)
            for number in 1...6 { #expect(try await store.user("user \(number)")?.name == "A") }
            _ = try await store.transact { try $0.endSessions(ofUser: "user 5") }
            #expect(try await forget(in: store) == ["user 5"])
        }
    }

    @Test("Many grants are forgotten in several transactions, between which others can change a grant")
    func inParts() async throws {
        let store = try TestStore(time: ManualTime())
        for number in Int64(1)...60 {
            try await add(number, to: store) { $0.disconnect(reason: .invalidGrant, at: start) }
        }
        let before = store.transactions
        #expect(try await forget(in: store) == (1...60).map { "user \($0)" }.sorted())
        #expect(store.transactions - before == 3)
        #expect(try await store.grantStatistics(at: now).byState == [.disconnected: 60])
        #expect(try await forget(in: store).isEmpty)
    }

    @Test("A forgotten user can connect again")
    func again() throws {
        var grant = try Sample.grant(1, owner: account)
        _ = grant.disconnect(reason: .invalidGrant, at: start)
        _ = grant.forget(at: now)
        let token = try Sample.refreshToken("next")
        _ = grant.reconnect(
            IncomingTokens(clientID: "client", owner: account, refreshToken: token),
            replacesRefreshToken: true,
            discardsStored: true,
            dueAt: now,
            at: now
        )
        #expect(grant.state == .active && grant.owner == account && grant.refreshToken == token)
    }
}
