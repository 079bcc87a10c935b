import Base
import Testing

@testable import HTTPClient

@Suite("The queue of requests")
struct TransferQueueTests {
    private let start = BootInstant(milliseconds: 0)

    private func transfer(deadline: BootInstant) -> HTTPTransfer {
        let transfer = HTTPTransfer(HTTPRequest(method: .get, url: "https://localhost/")) { _ in }
        transfer.prepare(at: start, deadline: deadline, configuration: HTTPClient.Configuration())
        return transfer
    }

    @Test("Requests start in the order of submission, within the limit")
    func order() {
        var queue = TransferQueue(maximumInFlight: 2)
        let transfers = (1...4).map { _ in transfer(deadline: start + .seconds(9)) }
        for transfer in transfers { queue.submit(transfer) }
        #expect(queue.startNext() === transfers[0])
        #expect(queue.startNext() === transfers[1])
        #expect(queue.startNext() == nil)
        #expect(queue.waiting == 2)
        queue.remove(transfers[2])
        queue.remove(transfers[0])
        queue.remove(transfers[0])
        #expect(queue.startNext() === transfers[3])
        #expect(queue.inFlight == 2)
    }

    @Test("The wait ends when a request can start or expires")
    func waitTime() {
        var queue = TransferQueue(maximumInFlight: 1)
        #expect(queue.waitTime(at: start, limit: .seconds(1)) == .seconds(1))
        let transfer = transfer(deadline: start + .milliseconds(300))
        queue.submit(transfer)
        #expect(queue.waitTime(at: start, limit: .seconds(1)) == .zero)
        #expect(queue.startNext() === transfer)
        #expect(queue.waitTime(at: start, limit: .seconds(1)) == .milliseconds(300))
        #expect(queue.expired(at: start + .milliseconds(299)).isEmpty)
        #expect(queue.expired(at: start + .milliseconds(300)).map(\.number) == [1])
        #expect(queue.waitTime(at: start + .seconds(2), limit: .seconds(1)) == .seconds(1))
    }

    @Test("Random operations agree with a plain list", arguments: 1...20 as ClosedRange<UInt64>)
    func model(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        var queue = TransferQueue(maximumInFlight: 3)
        var waiting: [UInt64] = []
        var inFlight: [UInt64] = []
        var transfers: [UInt64: HTTPTransfer] = [:]
        var now = start
        for _ in 1...2000 {
            let pick = { (list: [UInt64]) in list[Int(random.nextBits() % UInt64(list.count))] }
            switch random.nextBits() % 6 {
            case 0, 1, 2:
                let transfer = transfer(deadline: now + .milliseconds(Int64(random.nextBits() % 100)))
                queue.submit(transfer)
                waiting.append(transfer.number)
                transfers[transfer.number] = transfer
            case 3:
                let expected = inFlight.count < 3 ? waiting.first : nil
                #expect(queue.startNext()?.number == expected, "seed \(seed)")
                if let expected {
                    waiting.removeFirst()
                    inFlight.append(expected)
                }
            case 4:
                guard !(waiting + inFlight).isEmpty else { continue }
                let removed = pick(waiting + inFlight)
                transfers[removed].map { queue.remove($0) }
                waiting.removeAll { $0 == removed }
                inFlight.removeAll { $0 == removed }
            default:
                now = now + .milliseconds(Int64(random.nextBits() % 20))
                let expected = (waiting + inFlight).filter { (transfers[$0]?.deadline ?? start) <= now }
                let expired = queue.expired(at: now)
                #expect(Set(expired.map(\.number)) == Set(expected), "seed \(seed)")
                for removed in expired { queue.remove(removed) }
                waiting.removeAll { expected.contains($0) }
                inFlight.removeAll { expected.contains($0) }
            }
            #expect(queue.waiting == waiting.count && queue.inFlight == inFlight.count, "seed \(seed)")
        }
    }
}
