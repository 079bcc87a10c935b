import Clocks
import Scheduler
import Store
import Testing

@testable import RefreshEngine

@Suite("The scan of the due index")
struct ScanStateTests {
    private func page(_ numbers: ClosedRange<Int64>, dueAt: Timestamp) -> [DueEntry] {
        numbers.map { DueEntry(dueAt: dueAt, id: GrantID(rawValue: $0)) }
    }

    @Test("The index is read on page by page until the queue is full, and again when the queue runs short")
    func readingOn() throws {
        var bench = StateBench(maxRate: 100_000)
        let overdue = bench.conditions.now + .seconds(-1)
        var request = try bench.firstPage()
        #expect(request.cursor == nil)
        bench.state.pageArrived(page(1...2_000, dueAt: overdue), for: request, at: bench.conditions)
        request = try #require(bench.state.nextPage(of: "client", at: bench.conditions.now))
        #expect(request.cursor?.id.rawValue == 2_000)
        bench.state.pageArrived(page(2_001...4_000, dueAt: overdue), for: request, at: bench.conditions)
        #expect(bench.state.nextPage(of: "client", at: bench.conditions.now) == nil)
        #expect(bench.state.clientsToReadOn.isEmpty)
        for _ in 0..<21 {
            let request = try bench.beginClaim()
            _ = bench.state.abandon(request)
        }
        #expect(bench.state.clientsToReadOn == ["client"])
    }

    @Test("The cursor does not move past grants that found no room, nor back by a page from the beginning")
    func cursor() throws {
        var bench = StateBench()
        bench.queue(10_001...11_500)
        bench.queue(11_501...13_000)
        let overdue = bench.conditions.now + .seconds(-1)
        let first = try bench.firstPage()
        bench.state.pageArrived(page(1...2_000, dueAt: overdue), for: first, at: bench.conditions)
        let cursor = try #require(bench.state.gates["client"]?.cursor)
        #expect(cursor.id.rawValue == 1_000)
        bench.state.pageArrived(page(1...500, dueAt: overdue), for: first, at: bench.conditions)
        #expect(bench.state.gates["client"]?.cursor == cursor)
    }

    @Test("Coming grants wait in the window until they are due")
    func window() throws {
        var bench = StateBench()
        let request = try bench.firstPage()
        let soon = page(1...3, dueAt: bench.conditions.now + .seconds(2))
        bench.state.pageArrived(soon, for: request, at: bench.conditions)
        #expect(bench.state.window.count == 3 && bench.firstStep().isEnd)
        bench.pass(.seconds(2))
        bench.state.queueDueGrants(at: bench.conditions)
        #expect(bench.state.window.count == 0 && bench.firstStep().claimed == [1, 2, 3])
    }

    @Test("After a step of the clock the window is read again")
    func clockStep() throws {
        var bench = StateBench()
        bench.state.beginScan(at: bench.conditions.instant)
        bench.state.expect(try Sample.grant(1, dueAt: bench.conditions.now + .seconds(2)), at: bench.conditions.now)
        bench.state.clockRepaired(at: bench.conditions.instant)
        #expect(bench.state.window.count == 0 && bench.state.isScanDue(at: bench.conditions.instant))
    }
}
