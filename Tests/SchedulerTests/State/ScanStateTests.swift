import Base
import Scheduler
import Testing

@testable import Scheduler
@testable import Storage

@Suite("The scan of the due index")
struct ScanStateTests {
    private func page(_ numbers: ClosedRange<Int64>, dueAt: Timestamp) -> [DueEntry] {
        numbers.map { DueEntry(dueAt: dueAt, id: GrantID(rawValue: $0)) }
    }

    @Test("The index is read on page by page until the queue is full, and again when the queue runs short")
    func readingOn() throws {
        var fixture = StateFixture(maxRate: 100_000)
        let overdue = fixture.conditions.now + .seconds(-1)
        let isReading = fixture.state.beginReading("client")
        #expect(isReading)
        fixture.pageArrived(page(1...2_000, dueAt: overdue))
        let cursor = try #require(fixture.state.cursorToReadOn("client"))
        #expect(cursor.id.rawValue == 2_000)
        fixture.pageArrived(page(2_001...4_000, dueAt: overdue), after: cursor)
        #expect(fixture.state.cursorToReadOn("client") == nil)
        #expect(fixture.state.clientsToReadOn.isEmpty)
        for _ in 0..<21 {
            let request = try fixture.beginClaim()
            _ = fixture.state.freeSlots(of: request.ids, as: .abandoned)
        }
        #expect(fixture.state.clientsToReadOn == ["client"])
    }

    @Test("The cursor does not move past grants that found no room, nor back by a page from the beginning")
    func cursor() throws {
        var fixture = StateFixture()
        fixture.queue(10_001...11_500)
        fixture.queue(11_501...13_000)
        let overdue = fixture.conditions.now + .seconds(-1)
        let isReading = fixture.state.beginReading("client")
        #expect(isReading)
        fixture.pageArrived(page(1...2_000, dueAt: overdue))
        let cursor = try #require(fixture.state.gates["client"]?.cursor)
        #expect(cursor.id.rawValue == 1_000)
        fixture.pageArrived(page(1...500, dueAt: overdue))
        #expect(fixture.state.gates["client"]?.cursor == cursor)
    }

    @Test("Coming grants wait in the window until they are due")
    func window() throws {
        var fixture = StateFixture()
        let isReading = fixture.state.beginReading("client")
        #expect(isReading)
        let soon = page(1...3, dueAt: fixture.conditions.now + .seconds(2))
        fixture.pageArrived(soon)
        #expect(fixture.state.window.count == 3 && fixture.firstStep().isEnd)
        fixture.pass(.seconds(2))
        fixture.state.queueDueGrants(under: fixture.conditions)
        #expect(fixture.state.window.count == 0 && fixture.firstStep().claimed == [1, 2, 3])
    }

    @Test("After a step of the clock the window is read again")
    func clockStep() {
        var fixture = StateFixture()
        fixture.state.beginScan(at: fixture.conditions.instant)
        fixture.expect(1, dueIn: .seconds(2))
        fixture.state.clockRepaired(at: fixture.conditions.instant)
        #expect(fixture.state.window.count == 0 && fixture.state.isScanDue(at: fixture.conditions.instant))
    }
}
