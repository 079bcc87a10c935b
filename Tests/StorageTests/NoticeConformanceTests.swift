import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Every store keeps the notices for the backend", .timeLimit(.minutes(10)))
struct NoticeConformanceTests {
    private let first = GrantID(rawValue: 1)
    private let second = GrantID(rawValue: 2)

    private func user1(_ number: Int64) -> Notice.Key { Notice.Key(userID: "user 1", number: number) }
    private func user2(_ number: Int64) -> Notice.Key { Notice.Key(userID: "user 2", number: number) }

    /// Calls `body` with a store with grants 1 and 2, of users "user 1" and "user 2".
    private func withStore(
        _ kind: StoreKind,
        keepsNotices: Bool = true,
        _ body: (any Store, ManualTime) async throws -> Void
    ) async throws {
        try await kind.withStore(keepsNotices: keepsNotices) { store, time in
            try await store.add(try Sample.grants(1...2))
            try await body(store, time)
        }
    }

    @Test("A change of the profile makes one notice, durable with the change", arguments: StoreKind.allCases)
    func creation(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await store.change(first) { $0.disconnect(reason: .invalidGrant, at: start) }
            let notices = try await store.dueNotices(at: start, atMost: 10)
            let notice = try #require(notices.first)
            #expect(notices.count == 1)
            #expect(notice.userID == "user 1" && notice.at == start)
            #expect(
                notice.content
                    == .connection(of: Notice.Subject(first), from: .active, to: .disconnected, reason: .invalidGrant)
            )
            #expect(notice.attempts == 0 && notice.pendingSince == start)
            #expect(notice.id.description.wholeMatch(of: /ntc_[0-9a-f]{24}/) != nil && notice.key == user1(1))
            #expect(try await store.nextNoticeAt() == start)
            #expect(try await store.pendingNotices() == PendingNotices(count: 1, oldest: start))

            struct Refusal: Error {}
            await #expect(throws: Refusal.self) {
                try await store.transact { transaction in
                    var grant = try #require(try transaction.grant(second))
                    for event in grant.disconnect(reason: .invalidGrant, at: start) { try transaction.record(event) }
                    throw Refusal()
                }
            }
            #expect(try await store.dueNotices(at: start, atMost: 10) == notices)
        }
    }

    @Test("A notice keeps the trace of the request that made the change", arguments: StoreKind.allCases)
    func trace(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            let unsampled = try #require(
                TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
            )
            for trace in [Sample.trace, unsampled, nil] {
                try await TraceContext.$current.withValue(trace) {
                    try await store.transact { try $0.notify(.userDeleted, ofUser: "user 1", at: start) }
                }
            }
            for trace in [Sample.trace, unsampled, nil] {
                let due = try await store.dueNotices(at: start, atMost: 10)
                #expect(due.map(\.trace) == [trace])
                for notice in due { try await store.noticeAccepted(notice, at: start) }
            }
            #expect(try await store.replayNotices(since: start, ofUser: "user 1", at: start) == 3)
            #expect(try await store.dueNotices(at: start, atMost: 10).map(\.trace) == [Sample.trace])
        }
    }

    @Test("So do the notices of events and of added grants", arguments: StoreKind.allCases)
    func traceOfEvents(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            let (added, _) = Grant.connected(
                id: GrantID(rawValue: 3),
                userID: "user 3",
                incoming: IncomingTokens(clientID: "client"),
                dueAt: nil,
                at: start
            )
            var ended = added
            let addition = NewGrant(grant: added, events: ended.disconnect(reason: .invalidGrant, at: start))
            try await TraceContext.$current.withValue(Sample.trace) {
                try await store.change(first) { $0.disconnect(reason: .userRequest, at: start) }
                try await store.transact { try $0.insert([addition]) }
            }
            let due = try await store.dueNotices(at: start, atMost: 10)
            #expect(due.map(\.userID) == ["user 1", "user 3"])
            #expect(due.map(\.trace) == [Sample.trace, Sample.trace])
        }
    }

    @Test("The results of refreshes have no trace, whichever task stores them", arguments: StoreKind.allCases)
    func noTrace(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await TraceContext.$current.withValue(Sample.trace) {
                try await store.storeResults { try $0.notify(.userDeleted, ofUser: "user 1", at: start) }
            }
            #expect(try await store.dueNotices(at: start, atMost: 10).map(\.trace) == [nil])
        }
    }

    @Test(
        "Each kind of notice is read as it was stored, and those of one user come in order",
        arguments: StoreKind.allCases
    )
    func kinds(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            let contents: [Notice.Content] = [
                .lostScopes(of: Notice.Subject(first), lost: "https://mail.google.com/", granted: "email openid"),
                .connection(of: Notice.Subject(first), from: .active, to: .suspended, reason: .clientMismatch),
                .expiring(of: Notice.Subject(first), at: start + .seconds(9)),
                .sessionReused(try #require(SessionID(text: "000102030405060708090a0b0c0d0e0f"))),
                .userDeleted,
            ]
            try await store.transact { transaction in
                for content in contents { try transaction.notify(content, ofUser: "user 1", at: start) }
            }
            for content in contents {
                let due = try await store.dueNotices(at: start, atMost: 10)
                #expect(due.map(\.content) == [content])
                #expect(due.map(\.userID) == ["user 1"])
                for notice in due { try await store.noticeAccepted(notice, at: start) }
            }
            #expect(try await store.nextNoticeAt() == nil)
            #expect(try await store.pendingNotices() == PendingNotices(count: 0, oldest: nil))
            #expect(try await store.replayNotices(since: start, ofUser: "user 1", at: start) == 5)
            #expect(try await store.dueNotices(at: start, atMost: 10).map(\.content) == [contents[0]])
        }
    }

    @Test(
        "A user's deletion makes a notice after that of the grant, also without a grant",
        arguments: StoreKind.allCases
    )
    func deletion(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await store.transact { transaction in
                try transaction.insert(User(id: "without a grant", createdAt: start))
                for user in ["user 1", "without a grant", "without a grant", "missing"] {
                    _ = try AccountDeletion.delete(user: user, in: transaction, at: start)
                }
            }
            var types: [String: [String]] = [:]
            while let notice = try await store.dueNotices(at: start, atMost: 1).first {
                types[notice.userID, default: []].append(notice.content.type)
                try await store.noticeAccepted(notice, at: start)
            }
            #expect(types == ["user 1": ["grant.disconnected", "user.deleted"], "without a grant": ["user.deleted"]])
        }
        try await withStore(kind, keepsNotices: false) { store, _ in
            try await store.transact { transaction in
                _ = try AccountDeletion.delete(user: "user 1", in: transaction, at: start)
            }
            #expect(try await store.nextNoticeAt() == nil)
        }
    }

    @Test("A passing retry makes no notice", arguments: StoreKind.allCases)
    func silence(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await store.change(first) { $0.retry(reason: .invalidGrantUnconfirmed, dueAt: start, at: start) }
            #expect(try await store.nextNoticeAt() == nil)
            #expect(try await store.dueNotices(at: start + .seconds(9), atMost: 10).isEmpty)
        }
        try await withStore(kind, keepsNotices: false) { store, _ in
            try await store.change(first) { $0.disconnect(reason: .invalidGrant, at: start) }
            #expect(try await store.nextNoticeAt() == nil)
        }
    }

    @Test(
        "Of one user the next notice waits for the one before it; other users' do not",
        arguments: StoreKind.allCases
    )
    func order(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await disconnectAndReconnect(first, in: store)
            try await store.change(second) { $0.suspend(reason: .clientMismatch, probeAt: start, at: start) }
            func due(_ seconds: Int64) async throws -> [Notice.Key] {
                try await store.dueNotices(at: start + .seconds(seconds), atMost: 10).map(\.key)
            }
            #expect(try await due(5) == [user1(1), user2(1)])
            try await store.noticePostponed(try await store.notice(user1(1)), until: start + .seconds(60))
            #expect(try await due(59) == [user2(1)])
            #expect(try await due(60) == [user2(1), user1(1)])
            #expect(try await store.dueNotices(at: start + .seconds(60), atMost: 10).map(\.attempts) == [0, 1])

            try await store.noticeAccepted(try await store.notice(user2(1)), at: start + .seconds(60))
            #expect(try await store.nextNoticeAt() == start + .seconds(60))
            try await store.noticeGivenUp(try await store.notice(user1(1)), at: start + .seconds(61))
            #expect(try await due(61) == [user1(2)])
            try await store.noticeAccepted(try await store.notice(user1(2)), at: start + .seconds(62))
            // A second response to the same notice, and one to a notice that was never sent, change nothing.
            try await store.noticePostponed(try await store.notice(user1(2)), until: start)
            try await store.noticeGivenUp(try await store.notice(user1(2)), at: start)
            try await store.noticeAccepted(try await store.notice(user1(77)), at: start)
            #expect(try await store.nextNoticeAt() == nil)
        }
    }

    @Test(
        "A replay delivers finished notices again in order, of one user or of all",
        arguments: StoreKind.allCases
    )
    func replay(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await disconnectAndReconnect(first, in: store)
            try await store.change(second) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await store.noticeAccepted(try await store.notice(user1(1)), at: start)
            try await store.noticePostponed(try await store.notice(user1(2)), until: start + .seconds(30))
            try await store.noticeGivenUp(try await store.notice(user2(1)), at: start)

            let later = start + .seconds(100)
            #expect(try await store.replayNotices(since: start, ofUser: "missing", at: later) == 0)
            #expect(try await store.replayNotices(since: start + .seconds(1), ofUser: nil, at: later) == 0)
            #expect(try await store.replayNotices(since: start, ofUser: "user 1", at: later) == 1)
            // The older one comes first again, and the other waits for it although its time has come.
            let due = try await store.dueNotices(at: later, atMost: 10)
            #expect(due.map(\.key) == [user1(1)])
            #expect(due.map(\.pendingSince) == [later] && due.map(\.at) == [start] && due.map(\.attempts) == [0])
            #expect(try await store.replayNotices(since: start, ofUser: nil, at: later) == 1)
            #expect(try await store.dueNotices(at: later, atMost: 10).map(\.key) == [user1(1), user2(1)])
            try await store.noticeAccepted(try await store.notice(user1(1)), at: later)
            #expect(try await store.dueNotices(at: later, atMost: 10).map(\.key) == [user1(2), user2(1)])
        }
    }

    @Test(
        "A replay of more than one batch counts all, and gives each user the oldest first",
        arguments: StoreKind.allCases
    )
    func largeReplay(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            let (store, pageSize) = (try #require(store as? any SQLStore), 25)
            let numbers: ClosedRange<Int64> = 10...29
            try await store.add(try Sample.grants(numbers))
            // Two notices each, more than a batch, so that the notices of some grants are in two batches.
            try await store.transact { transaction in
                for second in 1...2 as ClosedRange<Int> {
                    for number in numbers {
                        try transaction.record(
                            GrantEvent(
                                grant: GrantID(rawValue: number),
                                at: start + .seconds(second),
                                kind: .state,
                                from: .active,
                                to: .disconnected,
                                reason: .invalidGrant,
                                generation: 1
                            )
                        )
                    }
                }
            }
            var finished = 0
            while true {
                let due = try await store.dueNotices(at: start + .seconds(9), atMost: 1_000)
                guard !due.isEmpty else { break }
                for notice in due { try await store.noticeAccepted(notice, at: start + .seconds(9)) }
                finished += due.count
            }
            #expect(finished == 2 * numbers.count && finished > pageSize)
            let later = start + .seconds(10)
            let replayed = try await store.replayNotices(since: start, ofUser: nil, at: later, pageSize: pageSize)
            #expect(replayed == finished)
            let due = try await store.dueNotices(at: later, atMost: 10_000)
            #expect(due.count == numbers.count)
            #expect(due.allSatisfy { $0.at == start + .seconds(1) }, "the oldest of each grant comes first")
        }
    }

    @Test("The end of a notice that was removed since does not end a later one", arguments: StoreKind.allCases)
    func removedNotice(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await store.transact { try $0.notify(.userDeleted, ofUser: "user 1", at: start) }
            let removed = try #require(try await store.dueNotices(at: start, atMost: 1).first)
            try await store.noticeAccepted(removed, at: start)
            let later = start + Retention.notices + .seconds(1)
            #expect(try await store.removeExpired(at: later).notices == 1)
            try await store.transact { try $0.notify(.userDeleted, ofUser: "user 1", at: later) }
            try await store.noticeAccepted(removed, at: later)
            try await store.noticeGivenUp(removed, at: later)
            try await store.noticePostponed(removed, until: later + .seconds(60))
            let due = try await store.dueNotices(at: later, atMost: 2)
            #expect(due.map(\.key) == [removed.key] && due.first?.id != removed.id)
        }
    }

    @Test("One process delivers at a time, until its lease ends or it gives it back", arguments: StoreKind.allCases)
    func claims(kind: StoreKind) async throws {
        try await withStore(kind) { store, time in
            #expect(try await store.claimNotices(owner: "a", for: .seconds(30)))
            #expect(try await !store.claimNotices(owner: "b", for: .seconds(30)))
            time.advance(by: .seconds(20))
            #expect(try await store.claimNotices(owner: "a", for: .seconds(30)))
            time.advance(by: .seconds(29))
            #expect(try await !store.claimNotices(owner: "b", for: .seconds(30)))
            time.advance(by: .seconds(1))
            #expect(try await store.claimNotices(owner: "b", for: .seconds(30)))
            try await store.releaseNotices(owner: "a")
            #expect(try await !store.claimNotices(owner: "a", for: .seconds(30)))
            try await store.releaseNotices(owner: "b")
            #expect(try await store.claimNotices(owner: "a", for: .seconds(30)))
        }
    }

    @Test("A process that stood still past the end of its lease may not deliver", arguments: StoreKind.allCases)
    func stoppedClaim(kind: StoreKind) async throws {
        let clock = LateReading()
        try await kind.withStore(clock: clock) { store, _ async throws in
            clock.stop(for: .seconds(30))
            #expect(try await !store.claimNotices(owner: "stopped", for: .seconds(30)))
            #expect(try await store.claimNotices(owner: "other", for: .seconds(30)))
            clock.stop(for: .seconds(29))
            #expect(try await store.claimNotices(owner: "other", for: .seconds(30)))
        }
    }

    @Test("A clock that was ahead does not delay a notice", arguments: StoreKind.allCases)
    func clockStep(kind: StoreKind) async throws {
        try await withStore(kind) { store, _ in
            try await store.change(first) { $0.disconnect(reason: .invalidGrant, at: start + .seconds(86_400)) }
            #expect(try await store.dueNotices(at: start, atMost: 10).isEmpty)
            _ = try await store.rescheduleGrantsStoredAfter(start)
            #expect(try await store.dueNotices(at: start, atMost: 10).count == 1)
        }
    }

    private func disconnectAndReconnect(_ id: GrantID, in store: any Store) async throws {
        try await store.change(id) { $0.disconnect(reason: .invalidGrant, at: start) }
        try await store.change(id) { grant in
            grant.reconnect(
                IncomingTokens(clientID: "client"),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: start,
                at: start
            )
        }
    }
}
