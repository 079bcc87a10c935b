import Base
import Testing

@testable import Storage

@Suite("Every store bounds the history of a grant", .timeLimit(.minutes(10)))
struct EventRetentionTests {
    private func makeEvent(_ grant: Grant, _ number: Int, _ kind: GrantEvent.Kind) -> GrantEvent {
        GrantEvent(
            grant: grant.id,
            at: start + .seconds(number),
            kind: kind,
            from: .active,
            to: .active,
            reason: .none,
            generation: Int64(number)
        )
    }

    @Test("The last hundred events stay, and the last connection before them", arguments: StoreKind.allCases)
    func lastEvents(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let (grant, other) = (try Sample.grant(1), try Sample.grant(2))
            let kinds: [GrantEvent.Kind] = [.connected, .state, .connected] + Array(repeating: .rotated, count: 150)
            try await store.add([grant, other])
            // Several events in each transaction, and the events of both grants in one.
            for numbers in [0..<3, 3..<9, 9..<100, 100..<101, 101..<153] {
                let events = numbers.map { makeEvent(grant, $0, kinds[$0]) }
                let others = numbers.prefix { $0 < 5 }.map { makeEvent(other, $0, .rotated) }
                try await store.transact { transaction in
                    for event in events + others { try transaction.record(event) }
                }
            }
            let history = try await store.events(of: grant.id, atMost: 1000)
            #expect(history.map(\.generation) == (53...152).reversed() + [2])
            #expect(try await store.transact { try $0.lastConnection(of: grant.id) } == start + .seconds(2))
            #expect(try await store.events(of: other.id, atMost: 1000).count == 5)
            // A new connection replaces the one that was kept.
            let connected = makeEvent(grant, 153, .connected)
            try await store.transact { try $0.record(connected) }
            #expect(try await store.events(of: grant.id, atMost: 1000).map(\.generation) == (54...153).reversed())
        }
    }

    @Test("Many events of one transaction are bounded too", arguments: StoreKind.allCases)
    func manyAtOnce(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let grant = try Sample.grant(1)
            let events = (0..<250).map { makeEvent(grant, $0, $0 == 3 ? .connected : .state) }
            try await store.transact { transaction in
                try transaction.insert(grant)
                for event in events { try transaction.record(event) }
            }
            let history = try await store.events(of: grant.id, atMost: 1000)
            #expect(history.map(\.generation) == (150...249).reversed() + [3])
        }
    }
}
