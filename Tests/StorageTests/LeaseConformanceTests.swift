import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Every store leases a grant to one worker at a time", .timeLimit(.minutes(10)))
struct LeaseConformanceTests {
    private let span: Duration = .seconds(30)

    @Test("A claim takes only grants that are due and free", arguments: StoreKind.allCases)
    func claims(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            try await store.add(try Sample.grants(1...3))
            let ids = (1...4).map { GrantID(rawValue: $0) }
            let claimed = try await store.claim(ids, dueBy: start + .seconds(2), owner: "a", for: span)
            #expect(claimed.map(\.id.rawValue) == [1, 2])
            for grant in claimed {
                #expect(grant.lease?.owner == "a")
                #expect(grant.lease?.until == time.sinceBoot + span)
                #expect(try await store.grant(grant.id) == grant)
            }
            #expect(claimed[0].lease?.claim != claimed[1].lease?.claim)
            for owner in ["a", "b"] {
                let again = try await store.claim(ids, dueBy: start + .seconds(2), owner: owner, for: span)
                #expect(again.isEmpty)
            }
        }
    }

    @Test("A lease ends by the boot clock, and no step of the wall clock ends it", arguments: StoreKind.allCases)
    func expiry(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let id = GrantID(rawValue: 1)
            try await store.add([try Sample.grant(1)])
            let first = try await store.claim([id], dueBy: nil, owner: "a", for: span)
            time.stepWallClock(by: .seconds(3600))
            time.advance(by: span - .milliseconds(1))
            #expect(try await store.claim([id], dueBy: nil, owner: "b", for: span).isEmpty)
            time.advance(by: .milliseconds(1))
            let second = try await store.claim([id], dueBy: nil, owner: "b", for: span)
            #expect(second.first?.lease?.owner == "b")
            #expect(second.first?.lease?.claim != first.first?.lease?.claim)
        }
    }

    @Test("A claim reports if the one before it had neither a result nor a release", arguments: StoreKind.allCases)
    func unfinishedClaim(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let id = GrantID(rawValue: 1)
            try await store.add([try Sample.grant(1)])
            for dueBy in [nil, start + .seconds(3600)] {
                let first = try await store.claim([id], dueBy: dueBy, owner: "a", for: span)
                #expect(first.first?.lease?.followsUnfinishedClaim == false)
                time.advance(by: span)
                let second = try await store.claim([id], dueBy: dueBy, owner: "b", for: span)
                #expect(second.first?.lease?.followsUnfinishedClaim == true)
                try await store.release([id: try #require(second.first?.lease?.claim)])
            }
        }
    }

    @Test("The lease of a request with an unknown outcome excludes claims until its end", arguments: StoreKind.allCases)
    func unknownOutcome(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let id = GrantID(rawValue: 1)
            try await store.add([try Sample.grant(1)])
            let claimed = try #require(try await store.claim([id], dueBy: nil, owner: "a", for: span).first)
            time.advance(by: .seconds(15))
            try await store.transact { transaction in
                var grant = claimed
                let lease = try #require(claimed.lease)
                grant.leaveAlone(under: lease, for: span, at: start, instant: transaction.leaseTime.instant)
                #expect(try transaction.replace(claimed, by: grant))
            }
            time.advance(by: span - .milliseconds(1))
            #expect(try await store.claim([id], dueBy: nil, owner: "b", for: span).isEmpty)
            time.advance(by: .milliseconds(1))
            let next = try await store.claim([id], dueBy: nil, owner: "b", for: span, takesOver: false)
            #expect(next.first?.lease?.followsUnfinishedClaim == false, "its result is stored")
        }
    }

    @Test("A lease of another boot has ended", arguments: StoreKind.allCases)
    func otherEpoch(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let id = GrantID(rawValue: 1)
            let far = time.sinceBoot + .seconds(86_400)
            try await store.add([try Sample.grant(1)])
            try await store.change(id) { grant in
                grant.setLease(Lease(owner: "a", claim: 5, epoch: "another boot", until: far))
                return []
            }
            #expect(try await store.renew([id: 5], for: span).isEmpty)
            #expect(try await store.claim([id], dueBy: nil, owner: "b", for: span).count == 1)
        }
    }

    @Test("A grant in an ended state is claimed only for a revocation", arguments: StoreKind.allCases)
    func endedGrants(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(1...4))
            let ids = (1...4).map { GrantID(rawValue: $0) }
            try await store.change(ids[0]) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await store.change(ids[1]) { $0.requireSignIn(reason: .noRefreshToken, at: start) }
            try await store.change(ids[2]) { $0.disconnectByRequest(revokes: true, at: start) }
            try await store.change(ids[3]) {
                $0.suspend(reason: GrantReason(rawValue: "org_internal"), probeAt: start + .seconds(86_400), at: start)
            }
            let forced = try await store.claim(ids, dueBy: nil, owner: "a", for: span)
            #expect(forced.map(\.id) == [ids[2], ids[3]])
            try await store.release(Dictionary(uniqueKeysWithValues: forced.map { ($0.id, $0.lease?.claim ?? 0) }))
            let due = try await store.claim(ids, dueBy: start, owner: "a", for: span)
            #expect(due.map(\.id) == [ids[2]])
        }
    }

    @Test("A claim of many grants leases all that are due and free, and only those", arguments: StoreKind.allCases)
    func manyGrants(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(1...130))
            let ids = (1...140).map { GrantID(rawValue: $0) }
            let dueBy = start + .seconds(3600)
            // Held by another worker, ended, and due later: each alone, in a row, and at the ends.
            let held = [1, 26, 30, 31, 32, 77].map { ids[$0 - 1] }
            let ended = [2, 25, 33, 99].map { ids[$0 - 1] }
            let later = [3, 50, 130].map { ids[$0 - 1] }
            #expect(try await store.claim(held, dueBy: nil, owner: "b", for: span).count == held.count)
            for id in ended { try await store.change(id) { $0.disconnect(reason: .invalidGrant, at: start) } }
            for id in later {
                try await store.change(id) { grant in
                    grant.postpone(until: dueBy + .seconds(1), at: start)
                    return []
                }
            }
            let expected = ids.prefix(130).filter { !(held + ended + later).contains($0) }

            let claimed = try await store.claim(ids.reversed(), dueBy: dueBy, owner: "a", for: span)
            #expect(claimed.map(\.id).sorted() == expected)
            #expect(claimed.allSatisfy { $0.lease?.owner == "a" })
            #expect(Set(claimed.map { $0.lease?.claim }).count == expected.count)
            for grant in claimed { #expect(try await store.grant(grant.id) == grant) }
            for id in held { #expect(try await store.grant(id)?.lease?.owner == "b") }
            #expect(try await store.claim(ids, dueBy: nil, owner: "c", for: span).map(\.id).sorted() == later)
        }
    }

    // The engine names each grant once. SQLite handles many in one statement, whose rows would not see each other.
    @Test("A grant that is named twice is leased once")
    func sameGrant() async throws {
        try await StoreKind.sqlite.withStore { store, _ in
            try await store.add(try Sample.grants(1...10))
            let ids = (1...10).map { GrantID(rawValue: $0) }
            let claimed = try await store.claim(ids + ids, dueBy: nil, owner: "a", for: span)
            #expect(claimed.map(\.id).sorted() == ids)
            for grant in claimed { #expect(try await store.grant(grant.id) == grant) }
        }
    }

    @Test(
        "A lease is renewed and released only under its own claim, and renewed after its end if nobody took it over",
        arguments: StoreKind.allCases
    )
    func renewal(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let ids = (1...2).map { GrantID(rawValue: $0) }
            try await store.add(try Sample.grants(1...2))
            let claimed = try await store.claim(ids, dueBy: nil, owner: "a", for: span)
            let claims = try claimed.map { try #require($0.lease?.claim) }
            time.advance(by: .seconds(20))
            let renewed = try await store.renew([ids[0]: claims[0], ids[1]: claims[1] ^ 1], for: span)
            #expect(renewed == [ids[0]])
            #expect(try await store.grant(ids[0])?.lease?.until == time.sinceBoot + span)

            time.advance(by: .seconds(20))
            for takesOver in [false, true] {
                let other = try await store.claim(ids, dueBy: nil, owner: "b", for: span, takesOver: takesOver)
                #expect(other.map(\.id) == (takesOver ? [ids[1]] : []))
            }
            #expect(try await store.renew([ids[1]: claims[1]], for: span).isEmpty)
            time.advance(by: span)
            #expect(try await store.renew([ids[0]: claims[0]], for: span) == [ids[0]])
            #expect(try await store.claim(ids, dueBy: nil, owner: "b", for: span).map(\.id) == [ids[1]])
            try await store.release([ids[0]: claims[0] ^ 1])
            #expect(try await store.grant(ids[0])?.lease != nil)
            try await store.release([ids[0]: claims[0]])
            #expect(try await store.grant(ids[0])?.lease == nil)
            #expect(try await store.claim(ids, dueBy: nil, owner: "b", for: span).map(\.id) == [ids[0]])
        }
    }

    @Test("Of many workers that claim at once, each grant goes to one", arguments: StoreKind.allCases)
    func exclusivity(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(1...100))
            let ids = (1...100).map { GrantID(rawValue: $0) }
            let winners = try await withThrowingTaskGroup(of: [GrantID].self) { group in
                for worker in 0..<8 {
                    group.addTask {
                        var won: [GrantID] = []
                        for chunk in 0..<10 {
                            let part = Array(ids[(chunk * 10)..<(chunk * 10 + 10)])
                            won += try await store.claim(part, dueBy: nil, owner: "\(worker)", for: .seconds(30))
                                .map(\.id)
                        }
                        return won
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(winners.sorted() == ids)
        }
    }

    @Test("The store's clock is that of its leases", arguments: StoreKind.allCases)
    func clock(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            let before = try await store.leaseTime()
            time.advance(by: .seconds(1))
            let after = try await store.transact { $0.leaseTime }
            #expect(after.epoch == before.epoch)
            #expect(after.instant - before.instant == .seconds(1))
        }
    }
}
