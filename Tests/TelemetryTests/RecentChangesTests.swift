import Base
import Telemetry
import Testing

@Suite("The last changes of state")
struct RecentChangesTests {
    private func change(_ number: Int) -> RecentChanges.Change {
        RecentChanges.Change(
            at: Timestamp(milliseconds: Int64(number)),
            grant: "00000000000000ab",
            from: "active",
            to: "retrying",
            reason: "server_error"
        )
    }

    @Test("are the last twenty, the newest first")
    func order() {
        let changes = RecentChanges()
        #expect(changes.all.isEmpty)
        for number in 1...20 { changes.record(change(number)) }
        #expect(changes.all == (1...20).reversed().map(change))
        for number in 21...45 { changes.record(change(number)) }
        #expect(changes.all == (26...45).reversed().map(change))
    }
}
