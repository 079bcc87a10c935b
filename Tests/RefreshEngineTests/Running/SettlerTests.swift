import Clocks
import GoogleOAuth
import Store
import Testing

@testable import RefreshEngine

/// What cannot be stored waits, and is counted; what can be stored does not wait for it.
@Suite(.timeLimit(.minutes(1)))
struct SettlerTests {
    private let time = ManualTime()

    private func finding(_ number: Int64) -> Finding {
        Finding(
            attempt: Attempt(grant: GrantID(rawValue: number), clientID: "client", claim: 7, generation: 1),
            answer: .refused(.noAnswer(code: "timeout"), retryAfter: nil)
        )
    }

    @Test("a finding that the store refuses for good does not keep a later one from being stored, and is answered")
    func refusedFinding() async throws {
        let (troubles, trouble) = AsyncStream.makeStream(of: Void.self)
        let settler = Settler(
            store: store(failing: 1, with: .corrupt),
            rules: RefreshRules(maxRate: 200),
            time: time,
            random: SeededRandom(seed: 1),
            onTrouble: { _, _ in trouble.yield() }
        )
        async let refused = settler.settle(finding(1))
        for await _ in troubles { break }
        #expect(await settler.settle(finding(2)) != nil)
        await settler.giveUp()
        #expect(await refused == nil)
    }

    @Test("what is being written when the worker gives up is answered as lost")
    func findingInHand() async throws {
        let (troubles, trouble) = AsyncStream.makeStream(of: Void.self)
        let settler = Settler(
            store: store(failing: .max, with: .diskFull),
            rules: RefreshRules(maxRate: 200),
            time: time,
            random: SeededRandom(seed: 1),
            onTrouble: { _, _ in trouble.yield() }
        )
        async let lost = settler.settle(finding(1))
        for await _ in troubles { break }
        await settler.giveUp()
        #expect(await lost == nil)
    }

    private func store(failing transactions: Int, with code: StoreError.Code) -> FailingStore {
        let store = FailingStore(InMemoryStore(timeSource: time))
        store.failTransactions(transactions, with: code)
        return store
    }
}
