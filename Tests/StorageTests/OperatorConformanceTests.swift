import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Every store changes grants on an operator's request", .timeLimit(.minutes(10)))
struct OperatorConformanceTests {
    private let later = start + .seconds(500)
    private let now = start + .seconds(100)

    private func retry(
        _ number: Int64,
        includesDisabledAccounts: Bool = false,
        in store: any Store
    ) async throws -> GrantRetry {
        let now = now
        return try await store.transact { transaction in
            let grant = try #require(try transaction.grant(GrantID(rawValue: number)))
            return try GrantRetry.retry(
                grant,
                includesDisabledAccounts: includesDisabledAccounts,
                in: transaction,
                at: now
            )
        }
    }

    @Test("A retried grant is due now, and the due index finds it", arguments: StoreKind.allCases)
    func retrying(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add((1...3).map { try Sample.grant($0, dueAt: later) })
            try await store.change(GrantID(rawValue: 1)) {
                $0.retry(reason: GrantReason(rawValue: "http_503"), dueAt: later, at: start)
            }
            try await store.change(GrantID(rawValue: 2)) {
                $0.suspend(reason: GrantReason(rawValue: "admin_policy_enforced"), probeAt: later, at: start)
            }
            for number in 1...3 as ClosedRange<Int64> { #expect(try await retry(number, in: store) == .due) }
            #expect(try await store.allDue(by: now).map(\.id.rawValue) == [1, 2, 3])
            let grant = try #require(try await store.grant(GrantID(rawValue: 1)))
            #expect(grant.state == .retrying && grant.reason.rawValue == "http_503" && grant.failures == 1)
        }
    }

    @Test("A grant that is overdue keeps its due time", arguments: StoreKind.allCases)
    func overdue(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add([try Sample.grant(1)])
            #expect(try await retry(1, in: store) == .due)
            #expect(try await store.grant(GrantID(rawValue: 1))?.dueAt == start + .seconds(1))
        }
    }

    @Test("A retry changes no grant that has ended, is in flight or waits", arguments: StoreKind.allCases)
    func untouched(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            try await store.add((1...5).map { try Sample.grant($0, dueAt: later) })
            try await store.add([try Sample.grant(6, dueAt: later, refreshToken: nil)])
            try await store.change(GrantID(rawValue: 1)) { $0.requireSignIn(reason: .accountMismatch, at: start) }
            try await store.change(GrantID(rawValue: 2)) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await store.change(GrantID(rawValue: 3)) {
                $0.retry(reason: .invalidGrantUnconfirmed, dueAt: later, at: start)
            }
            try await store.change(GrantID(rawValue: 4)) {
                $0.suspend(reason: .accountDisabled, probeAt: later, at: start)
            }
            _ = try await store.claim([GrantID(rawValue: 5)], dueBy: nil, owner: "worker", for: .seconds(30))
            let before = try await store.grants(after: nil, in: nil, atMost: 10)
            let expected: [GrantRetry] = [
                .ended, .ended, .awaitingConfirmation, .accountDisabled, .inFlight, .noRefreshToken,
            ]
            for (number, outcome) in zip(Int64(1)..., expected) {
                #expect(try await retry(number, in: store) == outcome)
            }
            #expect(try await store.grants(after: nil, in: nil, atMost: 10) == before)
            #expect(try await retry(4, includesDisabledAccounts: true, in: store) == .due)
            // A lease that has ended belongs to a worker that died.
            time.advance(by: .seconds(31))
            #expect(try await retry(5, in: store) == .due)
        }
    }

    @Test("A grant moves to another client id and is found under it", arguments: StoreKind.allCases)
    func clientChange(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add((1...5).map { try Sample.grant($0 * 2, dueAt: later) })
            let ids = (1...5).map { GrantID(rawValue: $0 * 2) }
            try await store.change(ids[0]) {
                $0.retry(reason: .clientMismatchUnconfirmed, dueAt: later, at: start)
            }
            try await store.change(ids[1]) { $0.requireSignIn(reason: .clientMismatch, at: start) }
            try await store.change(ids[2]) { $0.disconnect(reason: .invalidGrant, at: start) }
            _ = try await store.claim([ids[3]], dueBy: nil, owner: "worker", for: .seconds(30))
            let generations = try await store.grants(after: nil, in: nil, atMost: 9).map(\.generation)
            let now = now
            let outcomes = try await store.transact { transaction in
                try ids.map { id in
                    let grant = try #require(try transaction.grant(id))
                    return try ClientChange.move(grant, to: "right", in: transaction, at: now)
                }
            }
            #expect(outcomes == [.movedAndDue, .movedAndDue, .moved, .inFlight, .moved])
            let grants = try await store.grants(after: nil, in: nil, atMost: 9)
            #expect(grants.map(\.clientID) == ["right", "right", "right", "client 0", "right"])
            #expect(grants.map(\.state) == [.retrying, .retrying, .disconnected, .active, .active])
            #expect(grants.prefix(2).allSatisfy { $0.reason == .none && $0.dueAt == now && $0.failures == 0 })
            #expect(grants[4].dueAt == later)
            // A late answer to a request with the former client id is void.
            #expect(zip(grants, generations).map { $0.generation - $1 } == [1, 1, 0, 0, 1] as [Int64])
            #expect(try await store.clientsWithDueTimes() == ["client 0", "right"])
            #expect(try await store.allDue(by: now).map(\.id) == [ids[0], ids[1]])
            let history = try await store.events(of: ids[1], atMost: 1)
            #expect(history.first?.from == .reauthRequired && history.first?.to == .retrying)
        }
    }

    @Test("Users are listed page by page, in the order of their bytes", arguments: StoreKind.allCases)
    func users(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let names = ["a", "B", "é", "b", "a b", "\u{1F600}", "z"]
            try await store.transact { transaction in
                for name in names { try transaction.insert(User(id: name, createdAt: start)) }
                _ = try AccountDeletion.delete(user: "b", in: transaction, at: start)
            }
            var listed: [User] = []
            while true {
                let page = try await store.users(after: listed.last?.id, atMost: 3)
                listed += page
                if page.count < 3 { break }
            }
            #expect(listed.map(\.id) == ["B", "a", "a b", "b", "z", "é", "\u{1F600}"])
            #expect(listed.filter(\.isDeleted).map(\.id) == ["b"])
            #expect(try await store.users(after: nil, atMost: 0).isEmpty)
        }
    }
}
