import Base
import TestSupport
import Testing

@testable import Storage

@Suite("Old data is deleted by a clock that does not follow steps forward", .timeLimit(.minutes(10)))
struct DeletionClockTests {
    private let hour: Duration = .seconds(3600)

    private func reading(_ wall: Int, boot: Int, bootID: String = "boot") -> ClockReading {
        ClockReading(
            now: start + .seconds(wall),
            sinceBoot: BootInstant(milliseconds: Int64(boot) * 1000),
            bootID: bootID
        )
    }

    @Test("It goes on with the boot clock after a step forward, and follows again after the step back")
    func steps() {
        var clock = DeletionClock(believing: reading(0, boot: 100))
        clock.advance(to: reading(60, boot: 160))
        #expect(clock.now == start + .seconds(60))
        clock.advance(to: reading(61 + 3600, boot: 161))
        clock.advance(to: reading(71 + 3600, boot: 171))
        #expect(clock.lag == hour && clock.now == start + .seconds(71))
        clock.advance(to: reading(80, boot: 180))
        #expect(clock.lag == .zero && clock.now == start + .seconds(80))
    }

    @Test("A step back that is undone counts for nothing")
    func clockWithoutBattery() {
        var clock = DeletionClock(believing: reading(0, boot: 100))
        clock.advance(to: reading(-9000, boot: 5, bootID: "next boot"))
        #expect(clock.now == start + .seconds(-9000), "nothing is deleted by a later time than the clock's")
        clock.advance(to: reading(30, boot: 15, bootID: "next boot"))
        #expect(clock.lag == .seconds(20) && clock.now == start + .seconds(10))
    }

    @Test("A restart of the machine is believed for 15 minutes, and a longer one not", arguments: [900, 901])
    func restart(seconds: Int) {
        var clock = DeletionClock(believing: reading(0, boot: 100))
        clock.advance(to: reading(seconds, boot: 5, bootID: "next boot"))
        #expect(clock.lag == (seconds == 900 ? .zero : .seconds(901)))
    }

    @Test("The next worker and any command know of the step, until a person confirms", arguments: StoreKind.allCases)
    func stored(kind: StoreKind) async throws {
        try await kind.withStore { store, time in
            try await store.advanceDeletionClock(by: time)
            time.stepWallClock(by: hour * 24 * 31)
            try await store.advanceDeletionClock(by: time)
            time.advance(by: .seconds(30))
            // A new process has nothing but the store.
            let next = try await store.advanceDeletionClock(by: time)
            #expect(next.now == start + .seconds(30))
            #expect(next.warning?.contains("store clock --clock-is-right") == true)
            let confirmed = try await store.confirmClock(by: time)
            #expect(confirmed.now == time.now && confirmed.warning == nil)
            time.advance(by: .seconds(10))
            #expect(try await store.deletionClock(by: time).now == time.now)
        }
    }

    @Test("A reading that another process stored in the meantime counts")
    func simultaneous() async throws {
        try await StoreKind.sqlite.withStore { store, time in
            time.stepWallClock(by: hour * 48)
            _ = try await store.confirmClock(by: time)
            let former = DeletionClock(believing: reading(0, boot: 0)).stored
            #expect(try await !store.replaceNote("deletion_clock", from: former, with: former), "the note has changed")
            #expect(try await store.deletionClock(by: time).lag == .zero)
        }
    }

    @Test("A note that cannot be read begins anew", arguments: ["", "x", "1 2", "1 2 3"])
    func damaged(text: String) {
        #expect(DeletionClock(stored: text) == nil)
    }
}
