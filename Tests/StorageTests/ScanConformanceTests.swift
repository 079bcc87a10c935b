import Crypto
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Every store scans, counts and reports", .timeLimit(.minutes(10)))
struct ScanConformanceTests {
    @Test("Due grants are returned by client, in pages, by due time and then by id", arguments: StoreKind.allCases)
    func duePages(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            #expect(try await store.clientsWithDueTimes().isEmpty)
            let sameTime = start + .seconds(2)
            // Even numbers belong to client 0, odd ones to client 1.
            try await store.add([
                try Sample.grant(9, dueAt: start),
                try Sample.grant(2, dueAt: start),
                try Sample.grant(7, dueAt: sameTime),
                try Sample.grant(3, dueAt: sameTime),
                try Sample.grant(5, dueAt: sameTime),
                try Sample.grant(1, dueAt: sameTime + .milliseconds(1)),
            ])
            #expect(try await store.clientsWithDueTimes() == ["client 0", "client 1"])
            var seen: [DueEntry] = []
            while true {
                let page = try await store.due(ofClient: "client 1", by: sameTime, after: seen.last, atMost: 2)
                guard !page.isEmpty else { break }
                #expect(page.count <= 2)
                seen += page
            }
            #expect(seen.map(\.id.rawValue) == [9, 3, 5, 7])
            #expect(seen.map(\.dueAt) == [start, sameTime, sameTime, sameTime])
            let other = try await store.due(ofClient: "client 0", by: sameTime, after: nil, atMost: 2)
            #expect(other == [DueEntry(dueAt: start, id: GrantID(rawValue: 2))])
            #expect(try await store.due(ofClient: "missing", by: sameTime, after: nil, atMost: 2).isEmpty)
        }
    }

    @Test("A grant without a due time is in no page", arguments: StoreKind.allCases)
    func neverDue(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(1...2))
            try await store.change(GrantID(rawValue: 1)) { $0.disconnect(reason: .invalidGrant, at: start) }
            let due = try await store.allDue(by: start + .seconds(100))
            #expect(due.map(\.id.rawValue) == [2])
            #expect(try await store.clientsWithDueTimes() == ["client 0"])
        }
    }

    @Test("The statistics count states, due grants, ending and idle ones", arguments: StoreKind.allCases)
    func grantStatistics(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let now = start + .seconds(1_000_000)
            try await store.add(try Sample.grants(1...6) + [try Sample.grant(7, refreshToken: nil)])
            let fresh = RefreshedTokens(
                accessToken: try Sample.accessToken("new", obtainedAt: now),
                refreshTokenExpiresAt: now + .seconds(60)
            )
            try await store.change(GrantID(rawValue: 1)) { grant in
                grant.refreshed(fresh, at: now) { _ in now + .seconds(1) }
            }
            try await store.change(GrantID(rawValue: 2)) { $0.disconnect(reason: .invalidGrant, at: now) }
            try await store.change(GrantID(rawValue: 3)) {
                $0.retry(reason: GrantReason(rawValue: "network"), dueAt: now, at: now)
            }
            let statistics = try await store.grantStatistics(
                at: now,
                refreshTokensEndingBefore: now + .seconds(61),
                idleSince: now - .seconds(1)
            )
            let expected = GrantStatistics(
                byState: [.active: 5, .disconnected: 1, .retrying: 1],
                due: 5,
                oldestDueAt: start + .seconds(4),
                refreshTokensEnding: 1,
                refreshTokensEndingWithinDay: 1,
                idle: 4,
                expired: ExpiredGrants(clients: [
                    "client 0": ExpiredGrants.Client(count: 2, oldest: start + .seconds(3600)),
                    "client 1": ExpiredGrants.Client(count: 3, oldest: start + .seconds(3600)),
                ]),
                retryingReasons: [GrantReason(rawValue: "network"): 1]
            )
            #expect(statistics == expected)
            let earlier = try await store.grantStatistics(at: start, refreshTokensEndingBefore: now, idleSince: start)
            #expect(earlier.due == 0)
            #expect(earlier.oldestDueAt == nil)
            #expect(earlier.refreshTokensEnding == 0)
            #expect(earlier.idle == 0)
            #expect(earlier.expired == ExpiredGrants())
        }
    }

    @Test("A grant that waits for a retry and never had an access token is expired", arguments: StoreKind.allCases)
    func expiredWithoutToken(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add([try Sample.grant(1, accessToken: nil)])
            try await store.change(GrantID(rawValue: 1)) {
                $0.retry(reason: GrantReason(rawValue: "network"), dueAt: start + .seconds(900), at: start)
            }
            let statistics = try await store.grantStatistics(at: start + .seconds(60))
            #expect(statistics.due == 0)
            #expect(statistics.expired.count == 1)
            #expect(statistics.expired.oldest == start)
        }
    }

    @Test("Retrying grants are counted by reason, and those in doubt by client id", arguments: StoreKind.allCases)
    func inDoubt(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(1...5))
            let refusals: [(Int64, GrantReason)] = [
                (1, .invalidGrantUnconfirmed), (3, .refusalUnconfirmed), (5, GrantReason(rawValue: "network")),
                (2, .invalidGrantUnconfirmed),
            ]
            for (number, reason) in refusals {
                try await store.change(GrantID(rawValue: number)) {
                    $0.retry(reason: reason, dueAt: start + .seconds(900), at: start)
                }
            }
            try await store.change(GrantID(rawValue: 2)) { $0.disconnect(reason: .invalidGrant, at: start) }
            let statistics = try await store.grantStatistics(at: start)
            #expect(statistics.inDoubt == ["client 1": 2])
            #expect(
                statistics.retryingReasons == [
                    .invalidGrantUnconfirmed: 1, .refusalUnconfirmed: 1, GrantReason(rawValue: "network"): 1,
                ]
            )
        }
    }

    @Test("Keys are counted by the tokens they seal", arguments: StoreKind.allCases)
    func keys(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(1...3))
            let other = try Sample.refreshToken("again", key: Sample.otherKey)
            try await store.change(GrantID(rawValue: 1)) { grant in
                grant.reseal(refreshToken: other, accessToken: nil)
                return []
            }
            try await store.change(GrantID(rawValue: 2)) { $0.disconnectByRequest(revokes: false, at: start) }
            let key = try #require(KeyID(Sample.key))
            let otherKey = try #require(KeyID(Sample.otherKey))
            #expect(try await store.keysInUse() == [key: 3, otherKey: 1])
            let bindingKeyID = try #require(KeyID("0000000b"))
            var bound = try Sample.grant(4)
            bound.refreshToken?.bindingKeyID = bindingKeyID
            try await store.add([bound])
            let use = try await store.keyUse()
            #expect(use.tokensByKey == [key: 5, otherKey: 1, bindingKeyID: 1])
            #expect(use.tokens == 6, "a bound token is one, although two keys are needed for it")
        }
    }

    @Test("Grants stored by a clock that was ahead are due within a minute", arguments: StoreKind.allCases)
    func reschedule(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let phases: [Int64] = [0, 1 << 62, .max]
            let believed = try Sample.grant(1, dueAt: start + .seconds(5000))
            var ahead: [Grant] = []
            for id in phases {
                var grant = try Sample.grant(id, dueAt: start + .seconds(9000))
                let token = try Sample.accessToken("ahead", obtainedAt: start + .milliseconds(1))
                _ = grant.refreshed(RefreshedTokens(accessToken: token), at: start) { _ in start + .seconds(9000) }
                ahead.append(grant)
            }
            var dead = ahead[0]
            dead =
                Grant.connected(
                    id: GrantID(rawValue: 77),
                    userID: "dead",
                    incoming: IncomingTokens(clientID: "c", accessToken: dead.accessToken),
                    dueAt: nil,
                    at: start
                ).grant
            try await store.add(ahead + [believed, dead])
            #expect(try await store.rescheduleGrantsStoredAfter(start) == 3)
            let due = try await store.allDue(by: start + .seconds(60))
            #expect(due.map(\.id.rawValue) == phases)
            #expect(due.map { $0.dueAt - start } == [.zero, .seconds(30), .milliseconds(59_999)])
            #expect(try await store.grant(believed.id) == believed)
            #expect(try await store.grant(dead.id) == dead)
        }
    }

    @Test("The same holds for more grants than one transaction changes", arguments: StoreKind.allCases)
    func reschedulePages(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let (store, pageSize) = (try #require(store as? any SQLStore), 50)
            let count = Int64(pageSize + 1)
            let before = start - .seconds(1)
            try await store.add(Sample.grants(0...count - 1))
            #expect(try await store.rescheduleGrants(storedAfter: before, pageSize: pageSize) == Int(count))
            #expect(try await store.rescheduleGrants(storedAfter: start, pageSize: pageSize) == 0)
            for (client, expected) in [("client 0", pageSize / 2 + 1), ("client 1", pageSize / 2)] {
                let limit = before + .seconds(60)
                let due = try await store.due(ofClient: client, by: limit, after: nil, atMost: 2 * pageSize)
                #expect(due.count == expected)
            }
        }
    }

    @Test(
        "The same holds for grants that such a clock tried, except those that wait for a confirmation",
        arguments: StoreKind.allCases
    )
    func triedByClockAhead(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let ahead = start + .seconds(3600)
            var tried: [Grant] = []
            let reasons: [(Int64, GrantReason)] = [
                (1, GrantReason(rawValue: "http_503")), (2, .invalidGrantUnconfirmed), (3, .refusalUnconfirmed),
            ]
            for (id, reason) in reasons {
                var grant = try Sample.grant(id)
                _ = grant.retry(reason: reason, dueAt: ahead + .seconds(300), at: ahead)
                tried.append(grant)
            }
            try await store.add(tried)
            #expect(try await store.rescheduleGrantsStoredAfter(start) == 1)
            #expect(try await store.grant(tried[0].id)?.dueAt == start)
            for grant in tried.dropFirst() { #expect(try await store.grant(grant.id) == grant) }
        }
    }

    @Test("After a step of the clock every doubt begins anew, and nothing else changes", arguments: StoreKind.allCases)
    func restartDoubts(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            for before in [start + .seconds(604_800), start - .seconds(604_800)] {
                var grants: [Grant] = []
                let first = before > start ? 1 : 101
                for (id, reason) in zip(first..., [GrantReason.invalidGrantUnconfirmed, .refusalUnconfirmed]) {
                    var grant = try Sample.grant(Int64(id))
                    _ = grant.retry(reason: reason, dueAt: before + .seconds(300), at: before)
                    grant.suspect(since: before)
                    grants.append(grant)
                }
                var suspended = try Sample.grant(Int64(first) + 2)
                _ = suspended.suspend(
                    reason: GrantReason(rawValue: "org_internal"),
                    probeAt: before + .seconds(300),
                    at: before
                )
                suspended.suspect(since: before)
                grants.append(suspended)
                var others = try (3...6).map { try Sample.grant(Int64(first) + $0) }
                _ = others[0].retry(reason: GrantReason(rawValue: "http_503"), dueAt: before, at: before)
                _ = others[1].retry(reason: .clientMismatchUnconfirmed, dueAt: before, at: before)
                others[1].suspect(since: before)
                _ = others[2].suspend(reason: GrantReason(rawValue: "org_internal"), probeAt: before, at: before)
                try await store.add(grants + others)

                let now = start + .seconds(1)
                let clients = try await store.restartDoubts(at: now, confirmingAt: now + .seconds(300))
                #expect(clients == Set(grants.map(\.clientID)))
                for var grant in grants {
                    let stored = try #require(try await store.grant(grant.id))
                    #expect(stored.suspectedSince == now)
                    let dueAt = try #require(stored.dueAt)
                    #expect(dueAt >= now + .seconds(300) && dueAt < now + .seconds(360))
                    grant.suspect(since: now)
                    grant.reschedule(to: dueAt)
                    #expect(stored == grant)
                    // It must not be in doubt for the second round.
                    try await store.change(grant.id) { $0.disconnect(reason: .invalidGrant, at: now) }
                }
                for grant in others { #expect(try await store.grant(grant.id) == grant) }
            }
        }
    }

    @Test("Workers are live as long as they report", arguments: StoreKind.allCases)
    func workers(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let key = try #require(KeyID(Sample.key))
            let otherKey = try #require(KeyID(Sample.otherKey))
            let first = WorkerReport(id: "a", keyIDs: [otherKey, key], sealingKeyID: otherKey, isRefreshing: true)
            var second = WorkerReport(id: "b", keyIDs: [key], sealingKeyID: key)
            #expect(try await store.report(second) == [second])
            time.advance(by: .seconds(20))
            #expect(try await store.report(first) == [first, second])
            second.keyIDs = [key, otherKey]
            time.advance(by: .seconds(10))
            #expect(try await store.liveWorkers() == [first, WorkerReport(id: "b", keyIDs: [key], sealingKeyID: key)])
            #expect(try await store.report(second) == [first, second])
            time.advance(by: .seconds(21))
            #expect(try await store.liveWorkers() == [second])
            try await store.removeWorker("b")
            #expect(try await store.liveWorkers().isEmpty)
        }
    }

    @Test("A worker that stood still removes no report of another", arguments: StoreKind.allCases)
    func stoppedReport(kind: StoreKind) async throws {
        let clock = LateReading()
        try await kind.withStore(clock: clock) { store, time in
            let key = try #require(KeyID(Sample.key))
            let reports = ["stopped", "other"].map { WorkerReport(id: $0, keyIDs: [key], sealingKeyID: key) }
            time.advance(by: .seconds(61))
            #expect(try await store.report(reports[1]) == [reports[1]])
            clock.stop(for: .seconds(61))
            _ = try await store.report(reports[0])
            #expect(try await store.liveWorkers() == [reports[1]], "its own report is too old already")
        }
    }

    @Test("The clock reading that was stored last is read back", arguments: StoreKind.allCases)
    func clockReading(kind: StoreKind) async throws {
        try await kind.withStore { store, _ async throws in
            let boot = BootInstant(milliseconds: 5)
            let first = ClockReading(now: start, sinceBoot: boot, bootID: "boot of four words")
            let second = ClockReading(now: start - .seconds(4_000_000_000), sinceBoot: boot, bootID: "another boot")
            #expect(try await store.clockReading() == nil)
            for reading in [first, second, first] {
                try await store.record(reading)
                #expect(try await store.clockReading() == reading)
            }
        }
    }

    @Test("Expediting makes a client's retries due, but no confirmation", arguments: StoreKind.allCases)
    func expedite(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let later = start + .seconds(500)
            // Grants with even numbers belong to client 0.
            try await store.add(try Sample.grants(1...8))
            for number in [2, 3, 4] as [Int64] {
                try await store.change(GrantID(rawValue: number)) {
                    $0.retry(reason: GrantReason(rawValue: "http_503"), dueAt: later, at: start)
                }
            }
            try await store.change(GrantID(rawValue: 6)) {
                $0.retry(reason: .invalidGrantUnconfirmed, dueAt: later, at: start)
            }
            var cursor: GrantID?
            var batches = 0
            repeat {
                cursor = try await store.expediteRetries(
                    ofClient: "client 0",
                    dueBy: start + .seconds(50),
                    after: cursor,
                    atMost: 1
                )
                batches += 1
            } while cursor != nil
            #expect(batches == 3, "a batch is at most as large as requested")
            var dueTimes: [Int64: Duration] = [:]
            for number in 1...8 as ClosedRange<Int64> {
                let dueAt = try #require(try await store.grant(GrantID(rawValue: number))?.dueAt)
                dueTimes[number] = dueAt - start
            }
            let seconds = dueTimes.mapValues { Int($0.inSeconds) }
            #expect(seconds == [1: 1, 2: 50, 3: 500, 4: 50, 5: 5, 6: 500, 7: 7, 8: 8])
        }
    }
}
