import Clocks
import GoogleOAuth
import RefreshEngine
import Store
import Synchronization
import Testing

/// One client's trouble is not another's.
@Suite(.timeLimit(.minutes(1)))
struct FairnessTests {
    @Test("a refused client's overdue grants, more than a scan reads, do not hide those of others")
    func hiddenBehindABrokenClient() async throws {
        let bench = try EngineBench { client in
            client.id == "broken" ? RefreshAnswer(verdict: .clientFault(code: "deleted_client")) : .good
        }
        try await bench.add(1...20_500, of: "broken", overdueSince: .seconds(600))
        try await bench.add(30_001...30_003, of: "well", overdueSince: .seconds(1))
        for _ in 0..<3 {
            await bench.turn()
            bench.time.advance(by: .seconds(2))
        }
        for number in Int64(30_001)...30_003 {
            #expect(try await bench.grant(number)?.lastSuccessAt != nil, "grant \(number) was never refreshed")
        }
    }

    @Test("a client with a long queue does not take every place in flight")
    func onePlaceForTwo() async throws {
        let sent = Mutex<[String]>([])
        let bench = try EngineBench(mostInFlight: 1) { client in
            sent.withLock { $0.append(client.id) }
            return .good
        }
        try await bench.add(1...20, of: "a", overdueSince: .seconds(600))
        try await bench.add(21...22, of: "b", overdueSince: .seconds(600))
        for _ in 0..<4 { await bench.turn() }
        #expect(sent.withLock { $0 }.contains("b"), "the other client was never served: \(sent.withLock { $0 })")
    }

    @Test("of many more overdue than wait in memory, those that are due first are refreshed first")
    func earliestFirst() async throws {
        let bench = try EngineBench { _ in .good }
        // Ids and due times run against each other.
        for number in 1...10 {
            let numbers = Int64(number) * 1_000...Int64(number) * 1_000 + 899
            try await bench.add(numbers, of: "client", overdueSince: .seconds(number * 60))
        }
        for _ in 0..<150 {
            await bench.turn()
            bench.time.advance(by: .milliseconds(200))
        }
        var refreshed: [Int] = []
        for number in 1...10 {
            var count = 0
            for id in Int64(number) * 1_000...Int64(number) * 1_000 + 899 {
                if try await bench.grant(id)?.lastSuccessAt != nil { count += 1 }
            }
            refreshed.append(count)
        }
        let whole = refreshed.filter { $0 == 900 }.count
        #expect((1...9).contains(whole), "\(refreshed)")
        #expect(refreshed.suffix(whole).allSatisfy { $0 == 900 }, "\(refreshed)")
        #expect(refreshed.prefix(9 - whole).allSatisfy { $0 == 0 }, "\(refreshed)")
    }
}
