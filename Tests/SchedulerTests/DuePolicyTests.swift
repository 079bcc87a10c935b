import Clocks
import Scheduler
import Testing

struct DuePolicyTests {
    private static let obtained = Timestamp(secondsSince1970: 1_800_000_000)

    struct Case: Sendable {
        let lifetime: Int64
        let phase: Double
        /// Seconds from the token's birth to its due time.
        let due: Double
    }

    @Test(
        "A token is due its margin and jitter before expiry, and within the longest interval",
        arguments: [
            // An hour: margin 5 min, jitter up to 10 min.
            Case(lifetime: 3600, phase: 0, due: 3300),
            Case(lifetime: 3600, phase: 0.5, due: 3000),
            Case(lifetime: 3600, phase: 0.99, due: 2706),
            // A minute: the margin is a fifth, 12 s; jitter up to 10 s.
            Case(lifetime: 60, phase: 0, due: 48),
            Case(lifetime: 60, phase: 0.5, due: 43),
            // The margins meet where a fifth of the lifetime is 5 min.
            Case(lifetime: 1500, phase: 0, due: 1200),
            // A second: milliseconds still count.
            Case(lifetime: 1, phase: 0.5, due: 0.717),
            // A day, a year: every 90 min, spread over a quarter of an hour.
            Case(lifetime: 86_400, phase: 0, due: 5400),
            Case(lifetime: 86_400, phase: 0.5, due: 4950),
            Case(lifetime: 31_536_000, phase: 0.5, due: 4950),
            // No lifetime: due at birth.
            Case(lifetime: 0, phase: 0.5, due: 0),
            Case(lifetime: -3600, phase: 0.5, due: 0),
        ]
    )
    func due(_ example: Case) {
        let due = DuePolicy.due(
            obtainedAt: Self.obtained,
            expiresAt: Self.obtained + .seconds(example.lifetime),
            phase: example.phase
        )
        #expect(due == Self.obtained + .seconds(example.due))
    }

    @Test("Whatever the lifetime and phase, a token is due between its birth and its margin", arguments: 1...20)
    func stayWithinBounds(seed: Int) {
        let random = SeededRandom(seed: UInt64(seed))
        for _ in 0..<500 {
            let lifetime = Duration.milliseconds(Int64(random.nextBits() % 200_000_000) + 1)
            let phase = random.nextUnit()
            let due = DuePolicy.due(obtainedAt: Self.obtained, expiresAt: Self.obtained + lifetime, phase: phase)
            let comment: Comment = "seed \(seed), lifetime \(lifetime), phase \(phase)"
            // A millisecond for the rounding of points to whole milliseconds.
            let latest = lifetime - min(DuePolicy.margin, lifetime / 5) + .milliseconds(1)
            #expect(due >= Self.obtained, comment)
            #expect(due <= Self.obtained + latest, comment)
            #expect(due <= Self.obtained + DuePolicy.longestInterval, comment)
        }
    }

    @Test("Fifty thousand grants stored together come due evenly over a sixth of their lifetime")
    func spread() {
        let seed: UInt64 = 7
        let random = SeededRandom(seed: seed)
        var dueInMinute: [Int64: Int] = [:]
        for _ in 0..<50_000 {
            let due = DuePolicy.due(
                obtainedAt: Self.obtained,
                expiresAt: Self.obtained + .seconds(3600),
                phase: random.nextUnit()
            )
            // The earliest is due just after minute 45 and the latest at minute 55.
            dueInMinute[(due.milliseconds - Self.obtained.milliseconds - 1) / 60_000, default: 0] += 1
        }
        #expect(dueInMinute.keys.sorted() == Array(45...54), "seed \(seed)")
        #expect(dueInMinute.values.allSatisfy { (4_600...5_400).contains($0) }, "seed \(seed)")
    }
}
