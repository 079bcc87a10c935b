import TestSupport
import Testing

@testable import Base

@Suite("A sleep on the clocks of a test", .timeLimit(.minutes(10)))
struct ManualTimeTests {
    private let time = ManualTime()

    @Test("ends when the clocks have been advanced by its span, and not before")
    func ends() async throws {
        async let short: Void = time.sleep(for: .seconds(1))
        async let long: Void = time.sleep(for: .seconds(3))
        await time.sleepers(atLeast: 2)
        time.advance(by: .seconds(1))
        try await short
        time.advance(by: .milliseconds(1999))
        await time.sleepers(atLeast: 1, for: .seconds(3))
        time.advance(by: .milliseconds(1))
        try await long
    }

    @Test("ends at once when its task is cancelled, before or during the sleep")
    func cancelled() async {
        let time = time
        let sleeping = Task { try await time.sleep(for: .seconds(1)) }
        await time.sleepers(atLeast: 1)
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }

        let late = Task {
            await time.sleepers(atLeast: 1)
            try await time.sleep(for: .seconds(1))
        }
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
    }

    @Test("of zero, or up to the limit, ends at once and does not move the clocks")
    func immediate() async throws {
        let time = ManualTime(immediateUpTo: .milliseconds(5))
        let before = time.sinceBoot
        for span in [Duration.zero, .milliseconds(-1), .milliseconds(5)] { try await time.sleep(for: span) }
        #expect(time.sinceBoot == before)
    }

    @Test("is not ended by a step of the wall clock")
    func step() async throws {
        async let sleep: Void = time.sleep(for: .seconds(1))
        await time.sleepers(atLeast: 1)
        time.stepWallClock(by: .seconds(3600))
        await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(1))
        try await sleep
    }
}
