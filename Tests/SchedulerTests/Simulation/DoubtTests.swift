import Base
import GoogleOAuth
import Storage
import Telemetry
import Testing

@testable import Scheduler

/// Grants of one client under the rules, each refreshed when it is due, without an engine: hours pass in milliseconds.
private struct Fleet {
    var fixture = RulesFixture()
    var grants: [Grant]
    let random: SeededRandom
    /// The grants that were ever ended, with the time of the end.
    var ended: [Int: Timestamp] = [:]
    var breakerOpenings = 0
    /// The longest time that a grant waited beyond its due time because the breaker was open.
    var maximumWait: Duration = .zero
    /// How often callers ask for the token of each grant in doubt, or `nil` for never.
    var callersAskEvery: Duration?

    init(_ count: Int, seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        grants = try (0..<count).map { number in
            try Sample.grant(Int64(number) << 20, dueAt: start + .seconds(3000) * (Double(number) / Double(count)))
        }
    }

    private static let step: Duration = .seconds(10)

    /// Replaces the grants with imported ones that were never refreshed.
    mutating func makeUnproven() throws {
        grants = try grants.map { try Sample.grant($0.id.rawValue, isProven: false, dueAt: $0.dueAt) }
    }

    /// Refreshes each grant that is due, step by step; `answer` gives each answer.
    mutating func run(for span: Duration, answer: (Int, Timestamp, Double) -> RefreshFailure?) throws {
        let end = fixture.now + span
        var deadlines = DeadlineHeap()
        var changed = Array(grants.indices)
        while fixture.now < end {
            for place in changed {
                if let dueAt = grants[place].dueAt { deadlines.set(Int64(place), deadline: dueAt) }
            }
            changed.removeAll()
            while let entry = deadlines.popDue(at: fixture.now) { changed.append(Int(entry.key)) }
            for place in changed.sorted() where grants[place].dueAt.map({ $0 <= fixture.now }) ?? false {
                guard mayAsk(place) else { continue }
                changed += try ask(place, answer: answer)
            }
            let elapsed = (fixture.now - start).wholeMilliseconds
            if let callersAskEvery, elapsed % callersAskEvery.wholeMilliseconds == 0 {
                for place in grants.indices where grants[place].isInDoubt {
                    changed += try ask(place, answer: answer) + [place]
                }
            }
            fixture.advance(by: Self.step)
        }
    }

    /// Refreshes a grant, and returns the grants that were recalled.
    private mutating func ask(
        _ place: Int,
        answer: (Int, Timestamp, Double) -> RefreshFailure?
    ) throws -> [Int] {
        let decision: RefreshDecision
        if let verdict = answer(place, fixture.now, random.nextUnit()) {
            decision = fixture.refuse(verdict, on: &grants[place])
        } else {
            decision = fixture.decide(try Sample.granted(at: fixture.now), on: &grants[place])
            // The next period.
            grants[place].reschedule(to: fixture.now + .seconds(3000))
        }
        if case .opened = decision.effect.breakerChange { breakerOpenings += 1 }
        if [.disconnected, .reauthRequired, .suspended].contains(decision.outcome) { ended[place] = fixture.now }
        let recalled = decision.recalls.map { Int($0.rawValue >> 20) }
        for place in recalled {
            _ = grants[place].recall(confirmAt: fixture.now + .seconds(300), at: fixture.now)
            ended[place] = nil
        }
        return recalled
    }

    private mutating func mayAsk(_ place: Int) -> Bool {
        guard fixture.health.breaker.isOpen else { return true }
        if let dueAt = grants[place].dueAt { maximumWait = max(maximumWait, fixture.now - dueAt) }
        guard fixture.health.breaker.permits(at: fixture.instant) == .probeDue else { return false }
        return fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20))
    }
}

@Suite("Refusals in doubt, over hours", .timeLimit(.minutes(10)))
struct DoubtTests {
    @Test("Many proven grants that turn foreign do not stop others, and end after a day", arguments: [100, 500])
    func suspects(count: Int) throws {
        var fleet = try Fleet(1200 + count, seed: UInt64(count))
        let all = fleet.grants.count
        let foreign = Set((0..<all).filter { $0 * count / all != ($0 + 1) * count / all })
        try fleet.run(for: .seconds(30 * 3600)) { place, _, _ in
            foreign.contains(place) ? .clientOrForeignToken(code: "unauthorized_client") : nil
        }
        #expect(fleet.breakerOpenings == 0 && fleet.maximumWait == .zero)
        #expect(Set(fleet.ended.keys) == foreign)
        for at in fleet.ended.values {
            #expect(at - start >= .seconds(24 * 3600) && at - start <= .seconds(29 * 3600))
        }
    }

    @Test(
        "A wave above twice the usual rate ends no grant, in small fleets and in large ones",
        arguments: [0.02, 0.05, 0.10, 0.19, 0.50],
        [20, 200, 2_000]
    )
    func wave(rate: Double, count: Int) throws {
        let seed = UInt64(rate * 100) * 10_000 + UInt64(count)
        var fleet = try Fleet(count, seed: seed)
        // A day without trouble makes the client known.
        try fleet.run(for: .seconds(8 * 3600)) { _, _, _ in nil }
        let began = fleet.fixture.now
        try fleet.run(for: .seconds(600)) { _, _, draw in draw < rate ? .invalidGrant : nil }
        // The same again, with answers that stay the same for each grant.
        let second = fleet.fixture.now
        try fleet.run(for: .seconds(600)) { place, _, _ in
            Double(place * 7919 % 1000) < rate * 1000 ? .invalidGrant : nil
        }
        try fleet.run(for: .seconds(2 * 3600)) { _, _, _ in nil }
        #expect(fleet.ended.isEmpty, "seed \(seed): \(fleet.ended.count) ended, waves at \(began) and \(second)")
        #expect(fleet.grants.allSatisfy { $0.state == .active })
    }

    /// After an outage all grants are refused within minutes. From then on only confirmations show that the fault goes
    /// on, and some of them get through.
    @Test(
        "A fault of 45 minutes that lets some requests through ends few grants, although all were due at once",
        arguments: [30, 100, 400],
        [0.5, 0.8, 0.9, 0.95]
    )
    func chanceRecoveries(count: Int, refused: Double) throws {
        var fleet = try Fleet(count, seed: UInt64(count) + UInt64(refused * 100))
        try fleet.run(for: .seconds(8 * 3600)) { _, _, _ in nil }
        for place in fleet.grants.indices { fleet.grants[place].reschedule(to: fleet.fixture.now) }
        try fleet.run(for: .seconds(2700)) { _, _, draw in draw < refused ? .invalidGrant : nil }
        #expect(fleet.ended.count <= max(2, count / 20), "\(fleet.ended.count) of \(count)")
    }

    @Test("Neither do callers who ask for a token every minute", arguments: [0.8, 0.9, 0.95])
    func chanceRecoveriesOfCallers(refused: Double) throws {
        var fleet = try Fleet(100, seed: UInt64(refused * 100))
        try fleet.run(for: .seconds(8 * 3600)) { _, _, _ in nil }
        for place in fleet.grants.indices { fleet.grants[place].reschedule(to: fleet.fixture.now) }
        fleet.callersAskEvery = .seconds(60)
        try fleet.run(for: .seconds(2700)) { _, _, draw in draw < refused ? .invalidGrant : nil }
        #expect(fleet.ended.count <= 2, "\(fleet.ended.count) of 100")
    }

    @Test("A grant that is refused late in a wave is of the wave, although too few are to make one")
    func stragglers() throws {
        var fleet = try Fleet(100, seed: 7)
        try fleet.run(for: .seconds(8 * 3600)) { _, _, _ in nil }
        let began = fleet.fixture.now
        for place in fleet.grants.indices {
            let minute = [3: 12, 33: 17, 66: 24, 99: 29][place] ?? 0
            fleet.grants[place].reschedule(to: began + .seconds(60 * minute))
        }
        try fleet.run(for: .seconds(48 * 60)) { _, _, _ in .invalidGrant }
        #expect(fleet.ended.isEmpty, "\(fleet.ended)")
    }

    /// After an outage, or where tokens live for minutes, all grants are refused within one window of the rate. Then no
    /// first refusal follows, and the rate is as usual at the second confirmation.
    @Test(
        "A fault that refuses the same grants for 45 minutes ends none, although all were due at once",
        arguments: [60, 400]
    )
    func waveAtOnce(count: Int) throws {
        var fleet = try Fleet(count, seed: UInt64(count))
        try fleet.run(for: .seconds(8 * 3600)) { _, _, _ in nil }
        let refused = { (place: Int) in place * 7919 % 100 < 15 }
        for place in fleet.grants.indices { fleet.grants[place].reschedule(to: fleet.fixture.now) }
        try fleet.run(for: .seconds(2700)) { place, _, _ in refused(place) ? .invalidGrant : nil }
        #expect(fleet.ended.isEmpty)
        try fleet.run(for: .seconds(3600)) { _, _, _ in nil }
        #expect(fleet.grants.allSatisfy { $0.state == .active })
        // The same, for good.
        let began = fleet.fixture.now
        for place in fleet.grants.indices { fleet.grants[place].reschedule(to: began) }
        try fleet.run(for: .seconds(3600)) { place, _, _ in refused(place) ? .invalidGrant : nil }
        #expect(fleet.ended.count == fleet.grants.indices.filter(refused).count)
        #expect(fleet.ended.values.allSatisfy { $0 - began >= .seconds(3000) && $0 - began <= .seconds(3060) })
    }

    @Test(
        "A wave of other refusals ends and suspends no grant",
        arguments: [
            RefreshFailure.signInRequired(code: "invalid_rapt"), .blocked(code: "admin_policy_enforced"),
        ],
        [0.50, 1]
    )
    func otherRefusals(verdict: RefreshFailure, rate: Double) throws {
        var fleet = try Fleet(40, seed: 90)
        try fleet.run(for: .seconds(8 * 3600)) { _, _, _ in nil }
        // All are due within the wave.
        for place in fleet.grants.indices { fleet.grants[place].reschedule(to: fleet.fixture.now + .seconds(place)) }
        try fleet.run(for: .seconds(600)) { _, _, draw in draw < rate ? verdict : nil }
        try fleet.run(for: .seconds(2 * 3600)) { _, _, _ in nil }
        #expect(fleet.ended.isEmpty)
        #expect(fleet.grants.allSatisfy { $0.state == .active })
    }

    @Test("A true revocation is confirmed within an hour, wave or not", arguments: [0.0, 0.3], [20, 2_000])
    func trueRevocation(rate: Double, count: Int) throws {
        var fleet = try Fleet(count, seed: 70 + UInt64(count))
        try fleet.run(for: .seconds(8 * 3600)) { _, _, _ in nil }
        let gone = Set([3, 11])
        var firstAsked: [Int: Timestamp] = [:]
        try fleet.run(for: .seconds(3 * 3600)) { place, now, draw in
            guard gone.contains(place) else { return draw < rate ? .invalidGrant : nil }
            firstAsked[place] = firstAsked[place] ?? now
            return .invalidGrant
        }
        for place in gone {
            let asked = try #require(firstAsked[place])
            let ended = try #require(fleet.ended[place], "grant \(place) is \(fleet.grants[place].state)")
            #expect(ended - asked <= .seconds(3600))
        }
    }

    @Test("In a small fleet that is hardly known, refusals of half of the grants end none")
    func smallFleet() throws {
        var fleet = try Fleet(10, seed: 80)
        try fleet.run(for: .seconds(3000)) { _, _, _ in nil }
        // All are refreshed within a minute.
        for place in fleet.grants.indices { fleet.grants[place].reschedule(to: fleet.fixture.now + .seconds(place)) }
        let began = fleet.fixture.now
        try fleet.run(for: .seconds(3600)) { place, now, _ in
            place % 2 == 0 && now - began < .seconds(240) ? .invalidGrant : nil
        }
        #expect(fleet.ended.isEmpty)
    }

    @Test(
        "In a tiny fleet, refusals in half of all answers for ten minutes end no grant",
        arguments: [1, 2, 3, 10],
        [0, 3000, 8 * 3600]
    )
    func fewGrants(count: Int, quietSeconds: Int) throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            var fleet = try Fleet(count, seed: seed)
            try fleet.makeUnproven()
            // The first refreshes, of at least one grant, make the client known. With `quietSeconds` 0 some grants of a
            // larger fleet are not due before the refusals begin, and have never worked until then.
            try fleet.run(for: .seconds(700 + quietSeconds)) { _, _, _ in nil }
            for place in fleet.grants.indices {
                fleet.grants[place].reschedule(to: fleet.fixture.now + .seconds(50 * place))
            }
            try fleet.run(for: .seconds(600)) { _, _, draw in draw < 0.5 ? .invalidGrant : nil }
            try fleet.run(for: .seconds(2 * 3600)) { _, _, _ in nil }
            #expect(fleet.ended.isEmpty, "seed \(seed)")
        }
    }

    @Test(
        "A true revocation in a tiny fleet is confirmed in a quarter of an hour",
        arguments: [1, 2, 3, 10]
    )
    func revocationInFewGrants(count: Int) throws {
        var fleet = try Fleet(count, seed: 1)
        try fleet.run(for: .seconds(2 * 86_400)) { _, _, _ in nil }
        fleet.grants[0].reschedule(to: fleet.fixture.now)
        let asked = fleet.fixture.now
        try fleet.run(for: .seconds(3600)) { place, _, _ in place == 0 ? .invalidGrant : nil }
        let ended = try #require(fleet.ended[0])
        #expect(ended - asked <= .seconds(900) && fleet.ended.count == 1)
    }

    @Test("At an error rate of a half no outage ends by chance", arguments: [90, 91] as [UInt64])
    func errorRate(seed: UInt64) throws {
        var fixture = RulesFixture()
        let random = SeededRandom(seed: seed)
        var ends = 0
        for number in 0..<20_000 {
            var grant = try Sample.grant(Int64(number))
            let decision =
                random.nextUnit() < 0.5
                ? fixture.refuse(.endpointFault(code: "http_503"), on: &grant)
                : fixture.decide(try Sample.granted(at: fixture.now), on: &grant)
            if decision.effect.endsOutage { ends += 1 }
            fixture.advance(by: .milliseconds(20))
        }
        #expect(ends == 0, "seed \(seed)")
    }

    @Test("A flapping outage causes immediate retries of a client once in ten seconds at most")
    func flapping() throws {
        var fixture = RulesFixture()
        var ends: [Timestamp] = []
        for round in 0..<100 {
            for number in 0..<6 {
                var grant = try Sample.grant(Int64(10 * round + number))
                _ = fixture.refuse(.endpointFault(code: "http_503"), on: &grant)
                fixture.advance(by: .seconds(2))
            }
            var grant = try Sample.grant(9_999)
            if fixture.decide(try Sample.granted(at: fixture.now), on: &grant).effect.endsOutage {
                ends.append(fixture.now)
            }
        }
        #expect(ends.count > 10)
        #expect(zip(ends.dropFirst(), ends).allSatisfy { $0 - $1 >= .seconds(10) })
    }
}
