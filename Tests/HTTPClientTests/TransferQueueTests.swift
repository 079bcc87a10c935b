import Base
import HTTPClient
import Testing

@Suite("The queue of requests")
struct TransferQueueTests {
    private let start = BootInstant(milliseconds: 0)

    @Test("Requests start in the order of submission, within the limit")
    func order() {
        var queue = TransferQueue(maximumInFlight: 2)
        for id in 1...4 as ClosedRange<UInt64> { queue.submit(id, deadline: start + .seconds(9)) }
        #expect([queue.startNext(), queue.startNext(), queue.startNext()] == [1, 2, nil])
        #expect(queue.waiting == 2)
        queue.remove(3)
        queue.remove(1)
        queue.remove(1)
        #expect(queue.startNext() == 4)
        #expect(queue.inFlight == 2)
    }

    @Test("The wait ends when a request can start or expires")
    func waitTime() {
        var queue = TransferQueue(maximumInFlight: 1)
        #expect(queue.waitTime(at: start, limit: .seconds(1)) == .seconds(1))
        queue.submit(1, deadline: start + .milliseconds(300))
        #expect(queue.waitTime(at: start, limit: .seconds(1)) == .zero)
        #expect(queue.startNext() == 1)
        #expect(queue.waitTime(at: start, limit: .seconds(1)) == .milliseconds(300))
        #expect(queue.expired(at: start + .milliseconds(299)) == [])
        #expect(queue.expired(at: start + .milliseconds(300)) == [1])
        #expect(queue.waitTime(at: start + .seconds(2), limit: .seconds(1)) == .seconds(1))
    }

    @Test("Random operations agree with a plain list", arguments: 1...20 as ClosedRange<UInt64>)
    func model(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        var queue = TransferQueue(maximumInFlight: 3)
        var waiting: [UInt64] = []
        var inFlight: [UInt64] = []
        var deadlines: [UInt64: BootInstant] = [:]
        var now = start
        for id in 1...2000 as ClosedRange<UInt64> {
            let pick = { (list: [UInt64]) in list[Int(random.nextBits() % UInt64(list.count))] }
            switch random.nextBits() % 6 {
            case 0, 1, 2:
                let deadline = now + .milliseconds(Int64(random.nextBits() % 100))
                queue.submit(id, deadline: deadline)
                waiting.append(id)
                deadlines[id] = deadline
            case 3:
                let expected = inFlight.count < 3 ? waiting.first : nil
                #expect(queue.startNext() == expected, "seed \(seed)")
                if let expected {
                    waiting.removeFirst()
                    inFlight.append(expected)
                }
            case 4:
                guard !(waiting + inFlight).isEmpty else { continue }
                let removed = pick(waiting + inFlight)
                queue.remove(removed)
                waiting.removeAll { $0 == removed }
                inFlight.removeAll { $0 == removed }
            default:
                now = now + .milliseconds(Int64(random.nextBits() % 20))
                let expected = (waiting + inFlight).filter { (deadlines[$0] ?? start) <= now }
                let expired = queue.expired(at: now)
                #expect(Set(expired) == Set(expected), "seed \(seed)")
                for removed in expired { queue.remove(removed) }
                waiting.removeAll { expected.contains($0) }
                inFlight.removeAll { expected.contains($0) }
            }
            #expect(queue.waiting == waiting.count && queue.inFlight == inFlight.count, "seed \(seed)")
        }
    }
}
