import Clocks
import Dispatch
import PostgresStore
import Secrets
import Store
import Testing

@Suite("Workers share a PostgreSQL database", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresSharingTests {
    private func withStores(
        patience: Duration = .seconds(10),
        _ body: (PostgresStore, PostgresStore, Secret) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let first = try await PostgresStore.open(url: url, patience: patience)
            let second = try await PostgresStore.open(url: url)
            try await body(first, second, url)
            await first.close()
            await second.close()
        }
    }

    @Test("Of two workers that claim at once, each grant goes to one")
    func claims() async throws {
        try await withStores { first, second, _ in
            try await first.add(try Sample.grants(1...300))
            let ids = (1...300).map { GrantID(rawValue: $0) }
            let won = try await withThrowingTaskGroup(of: [GrantID].self) { group in
                for store in [first, second] {
                    for start in stride(from: 0, to: 300, by: 50) {
                        group.addTask {
                            let part = Array(ids[start..<start + 50])
                            return try await store.claim(part, dueBy: nil, owner: "w", for: .seconds(30)).map(\.id)
                        }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(won.sorted() == ids)
        }
    }

    @Test("Leases go by the database's clock")
    func leaseClock() async throws {
        try await withStores { first, second, _ in
            try await first.add([try Sample.grant(1)])
            let id = GrantID(rawValue: 1)
            let claimed = try await first.claim([id], dueBy: nil, owner: "a", for: .seconds(30))
            let remaining = try #require(claimed.first?.lease).remaining(at: try await second.leaseTime())
            #expect(remaining > .seconds(15) && remaining < .seconds(45))
        }
    }

    @Test("Transactions take turns: no update is lost")
    func turns() async throws {
        try await withStores { first, second, _ in
            try await first.add([try Sample.grant(1)])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<40 {
                    let store = index.isMultiple(of: 2) ? first : second
                    group.addTask {
                        try await store.change(GrantID(rawValue: 1)) { grant in
                            grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await first.grant(GrantID(rawValue: 1))?.attempts == 40)
        }
    }

    @Test("A worker that is stopped in the middle of a transaction holds nobody up for long, and writes nothing")
    func stopped() async throws {
        try await withStores(patience: .seconds(2)) { stopped, other, _ in
            try await other.add([try Sample.grant(1)])
            let hasBegun = AsyncStream.makeStream(of: Void.self)
            let mayGoOn = DispatchSemaphore(value: 0)
            async let outcome: Void = stopped.transact { transaction in
                var grant = try #require(try transaction.grant(GrantID(rawValue: 1)))
                hasBegun.continuation.yield()
                mayGoOn.wait()
                mayGoOn.signal()
                _ = grant.disconnect(reason: .invalidGrant, at: start)
                try transaction.update(grant)
            }
            var begun = hasBegun.stream.makeAsyncIterator()
            await begun.next()
            try await other.change(GrantID(rawValue: 1)) { grant in
                grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
            }
            mayGoOn.signal()
            do {
                try await outcome
                Issue.record("the stopped transaction was committed")
            } catch let error as StoreError {
                #expect(error.mayPass)
            }
            #expect(try await other.grant(GrantID(rawValue: 1))?.state == .retrying)
        }
    }

    @Test("A worker hears of grants that another one connected, and of nothing else", .timeLimit(.minutes(1)))
    func notifications() async throws {
        try await withStores { first, second, url in
            var changes = first.changes().makeAsyncIterator()
            // Said once it listens, for what may have been missed.
            await changes.next()
            try await second.add([try Sample.grant(1)])
            let (grant, events) = Grant.connected(
                id: GrantID(rawValue: 2),
                userID: "user 2",
                handover: Handover(clientID: "client"),
                dueAt: nil,
                at: start
            )
            try await second.transact { transaction in
                try transaction.insert(grant)
                for event in events { try transaction.record(event) }
            }
            await changes.next()
            #expect(try await first.grant(grant.id) != nil)
            // A connection that was lost may have lost word of something: it is told of too.
            try await PostgresServer.endSessions(of: url)
            await changes.next()
        }
    }
}
