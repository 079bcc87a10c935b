import Base
import Testing

@testable import Scheduler

struct DuePolicyTests {
    private static let obtained = Timestamp(secondsSince1970: 620 * 2_907_000)

    struct Case: Sendable {
        let lifetime: Int64
        let phase: Double
        /// The seconds between the token's start and its due time.
        let due: Double
    }

    // The token starts at a multiple of each of the periods below, so the home instants of phase 0 are whole periods
    // after it.
    @Test(
        "A token is due at its grant's last home instant before the margin, and within the longest interval",
        arguments: [
            // An hour: margin 5 min, a home instant every 3000 s.
            Case(lifetime: 3600, phase: 0, due: 3000),
            Case(lifetime: 3600, phase: 0.05, due: 3150),
            Case(lifetime: 3600, phase: 0.1, due: 3300),
            Case(lifetime: 3600, phase: 0.11, due: 330),
            Case(lifetime: 3600, phase: 0.5, due: 1500),
            Case(lifetime: 3600, phase: 0.99, due: 2970),
            // A second less makes no difference.
            Case(lifetime: 3599, phase: 0.5, due: 1500),
            Case(lifetime: 3598, phase: 0.99, due: 2970),
            // A minute: the margin is a fifth, 12 s; a home instant every 45 s.
            Case(lifetime: 60, phase: 0, due: 45),
            Case(lifetime: 60, phase: 0.5, due: 22.5),
            // The margins meet where a fifth of the lifetime is 5 min: a home instant every 1140 s.
            Case(lifetime: 1500, phase: 0.5, due: 570),
            // A second: milliseconds still count.
            Case(lifetime: 1, phase: 0.5, due: 0.38),
            // A day, a year: a home instant every 85 min.
            Case(lifetime: 86_400, phase: 0, due: 5100),
            Case(lifetime: 86_400, phase: 0.5, due: 2550),
            Case(lifetime: 31_536_000, phase: 0.5, due: 2550),
            // No lifetime: due at once.
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
        #expect((due - Self.obtained).inSeconds == example.due)
    }

    @Test("With any lifetime and phase, a token is due between its start and its margin", arguments: 1...20)
    func stayWithinBounds(seed: Int) {
        let random = SeededRandom(seed: UInt64(seed))
        for _ in 0..<500 {
            let lifetime = Duration.milliseconds(Int64(random.nextBits() % 200_000_000) + 1)
            let phase = random.nextUnit()
            let due = DuePolicy.due(obtainedAt: Self.obtained, expiresAt: Self.obtained + lifetime, phase: phase)
            let comment: Comment = "seed \(seed), lifetime \(lifetime), phase \(phase)"
            // A millisecond for the rounding of instants to whole milliseconds.
            let latest = lifetime - min(DuePolicy.margin, lifetime / 5) + .milliseconds(1)
            #expect(due >= Self.obtained, comment)
            #expect(due <= Self.obtained + latest, comment)
            #expect(due <= Self.obtained + DuePolicy.maximumInterval, comment)
        }
    }

    @Test("Fifty thousand grants stored together are due evenly over the whole period")
    func spread() {
        let seed: UInt64 = 7
        let random = SeededRandom(seed: seed)
        var dueInSpan: [Int64: Int] = [:]
        for _ in 0..<50_000 {
            let due = DuePolicy.due(
                obtainedAt: Self.obtained,
                expiresAt: Self.obtained + .seconds(3600),
                phase: random.nextUnit()
            )
            // The earliest is due 5 min after its start and the latest 55 min after.
            dueInSpan[(due.milliseconds - Self.obtained.milliseconds - 1) / 300_000, default: 0] += 1
        }
        #expect(dueInSpan.keys.sorted() == Array(1...10), "seed \(seed)")
        #expect(dueInSpan.values.allSatisfy { (4_600...5_400).contains($0) }, "seed \(seed)")
    }

    @Test("A grant that is refreshed a little late, or hours late, returns to its home instant", arguments: 1...20)
    func comesHome(seed: Int) {
        let random = SeededRandom(seed: UInt64(seed))
        let phase = random.nextUnit()
        var due = Self.obtained
        var homes: Set<Int64> = []
        for round in 0..<200 {
            let late = Duration.milliseconds(Int64(random.nextBits() % (round % 10 == 0 ? 20_000_000 : 60_000)))
            let lifetime = Duration.seconds(3598 + Int64(random.nextBits() % 3))
            due = DuePolicy.due(obtainedAt: due + late, expiresAt: due + late + lifetime, phase: phase)
            homes.insert(due.milliseconds % 3_000_000)
        }
        #expect(homes == [Int64(phase * 3_000_000)], "seed \(seed)")
    }
}

@Suite("The due time after a refresh")
struct DueAfterRefreshTests {
    /// A grant as the schedule knows it.
    private struct Model {
        var now: Timestamp
        var lastRefreshAt: Timestamp?
        var quickRefreshes = 0

        /// Refreshes now with a token that was obtained `age` ago, and returns the next due time.
        mutating func refresh(lifetime: Duration, age: Duration, phase: Double) -> Timestamp {
            let isQuick = lastRefreshAt.map { DuePolicy.isQuick(after: now - $0, lifetime: lifetime) } ?? false
            quickRefreshes = isQuick ? quickRefreshes + 1 : 0
            lastRefreshAt = now
            let obtainedAt = now - age
            return DuePolicy.due(
                obtainedAt: obtainedAt,
                expiresAt: obtainedAt + lifetime,
                phase: phase,
                quickRefreshes: quickRefreshes,
                afterRefreshAt: now
            )
        }
    }

    @Test(
        "is at least a second ahead, after any sequence of lifetimes in any order",
        arguments: 1...20 as ClosedRange<UInt64>
    )
    func neverInThePast(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        let lifetimes: [Int64] = [-3_600_000, 0, 1, 900, 1_000, 30_000, 300_000, 3_600_000, 86_400_000, 34_560_000_000]
        let phase = random.nextUnit()
        var model = Model(now: Timestamp(secondsSince1970: 1_795_000_000))
        for step in 0..<500 {
            let lifetime = Duration.milliseconds(lifetimes[Int(random.nextBits() % UInt64(lifetimes.count))])
            let age = random.nextBits() % 4 == 0 ? Duration.milliseconds(Int64(random.nextBits() % 7_200_000)) : .zero
            let due = model.refresh(lifetime: lifetime, age: age, phase: phase)
            #expect(due >= model.now + DuePolicy.minimumWait, "seed \(seed), step \(step)")
            #expect(due <= model.now + DuePolicy.maximumInterval, "seed \(seed), step \(step)")
            // On time, late, or early because a caller asked.
            let wait = due - model.now
            model.now = model.now + [wait, wait * 3, wait / 50][Int(random.nextBits() % 3)]
        }
    }

    @Test("moves further away while every answer brings an expired token")
    func deadTokens() {
        var model = Model(now: Timestamp(secondsSince1970: 1_795_000_000))
        let began = model.now
        var refreshes = 0
        while model.now - began < .seconds(3600) {
            model.now = model.refresh(lifetime: .zero, age: .zero, phase: 0.5)
            refreshes += 1
        }
        #expect((10...20).contains(refreshes), "\(refreshes) refreshes in an hour")
    }

    @Test("follows the schedule for a few quick refreshes, and is the latest possible after more")
    func quickRefreshes() {
        let now = Timestamp(secondsSince1970: 1_795_000_000)
        func due(_ quickRefreshes: Int) -> Duration {
            DuePolicy.due(
                obtainedAt: now,
                expiresAt: now + .seconds(30),
                phase: 0.9,
                quickRefreshes: quickRefreshes,
                afterRefreshAt: now
            ) - now
        }
        let scheduled = due(0)
        #expect(due(DuePolicy.quickRefreshesAllowed) == scheduled)
        #expect(due(DuePolicy.quickRefreshesAllowed + 1) == max(scheduled, .seconds(10)))
        #expect(due(1_000_000) == .seconds(24), "the margin before the token expires")
        #expect(DuePolicy.isQuick(after: .seconds(374), lifetime: .seconds(3600)))
        #expect(!DuePolicy.isQuick(after: .seconds(375), lifetime: .seconds(3600)))
    }

    @Test("doubles from ten seconds to ten minutes with each further quick refresh, whatever a retry waits")
    func slowed() {
        let now = Timestamp(secondsSince1970: 1_795_000_000)
        let waits = (1...8).map { excess in
            DuePolicy.due(
                obtainedAt: now,
                expiresAt: now,
                phase: 0,
                quickRefreshes: DuePolicy.quickRefreshesAllowed + excess,
                afterRefreshAt: now
            ) - now
        }
        #expect(waits == [10, 20, 40, 80, 160, 320, 600, 600].map { .seconds($0) })
    }
}

@Suite("The due time of a grant in good order")
struct DueTimesTests {
    @Test("At once without a live access token, at its end without a refresh token, else by the policy")
    func due() throws {
        #expect(DuePolicy.due(try Sample.grant(), at: start) == start)
        let dead = try Sample.accessToken(obtainedAt: start - .seconds(3600))
        #expect(DuePolicy.due(try Sample.grant(accessToken: dead), at: start) == start)
        let living = try Sample.accessToken()
        #expect(DuePolicy.due(try Sample.grant(0, accessToken: living), at: start) == start + .seconds(3000))
        let half = try Sample.grant(1 << 62, accessToken: living)
        #expect(DuePolicy.due(half, at: start) == start + .seconds(1500))
        let late = start + .seconds(3000)
        #expect(DuePolicy.due(half, at: late) == late, "one that was imported overdue is not late")
        let bare = try Sample.grant(hasRefreshToken: false, accessToken: living)
        #expect(DuePolicy.due(bare, at: start) == start + .seconds(3600))
    }

    @Test("A refresh token with a timeout is due within half of it, and at least a second ahead")
    func timeout() throws {
        let grant = try Sample.grant(1 << 62, accessToken: try Sample.accessToken())
        func due(within timeout: Duration?) -> Duration {
            DuePolicy.dueAfterRefresh(grant, within: timeout, at: start) - start
        }
        #expect(due(within: nil) == .seconds(1500))
        #expect(due(within: .seconds(86_400)) == .seconds(1500))
        #expect(due(within: .seconds(600)) == .seconds(300))
        #expect(due(within: .seconds(1)) == .seconds(1))
    }
}
