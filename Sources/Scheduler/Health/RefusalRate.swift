import Base

/// The rate at which one client's proven grants are refused: in the last ten minutes, in the latest of these answers
/// (up to two thousand), and in recent days (the baseline).
///
/// A refusal is `invalid_grant`, or another answer that ends or suspends a grant.
///
/// The last answers alone do not distinguish a wave of a few per cent from users who left. The comparison with the
/// usual rate does. The usual rate is computed from grants that ended for good, so a wave whose grants come back does
/// not raise it.
package struct RefusalRate: Hashable, Sendable {
    /// The meaning of the recent answers for one more refusal.
    package enum Level: Hashable, Comparable, Sendable {
        /// As many as usual.
        case usual
        /// More than usual: `RefreshRules+Doubt.swift` decides what is believed.
        case unusual
        /// More than usual, for several grants: those that were ended without confirmation just before are recalled.
        case wave
    }

    /// The counts of answers since a minute of the wall clock, or since a day.
    struct Counts: Hashable, Sendable {
        var since: Int64 = 0
        var answers = 0
        var refused = 0
        /// Grants that were ended or suspended because a refusal was believed.
        var ended = 0
        /// Rotated tokens that arrived too late to be stored.
        var dropped = 0
    }

    static let minutesKept: Int64 = 10
    static let span: Duration = .seconds(60 * minutesKept)
    static let answersPerBlock = 1_000
    /// The smallest number of grants in a wave that were refused for the first time.
    static let minimumInWave = 3
    /// The prior: one answer in two hundred is assumed to be usual while a client has few recorded answers.
    private static let prior = (answers: 1_000, ended: 5)
    /// Rates below this multiple of the usual rate are never unusual. An allowance for chance is added.
    private static let tolerated = 1.5
    private static let maximumCount = 1 << 40

    /// The counts of each of the last minutes.
    private(set) var minutes: [Counts] = []
    /// The counts of up to a thousand answers each, for clients that get as many within seconds.
    private(set) var blocks: [Counts] = []
    /// The counts that define the usual rate, halved once a day so that they follow the last days.
    private(set) var baseline = Counts()

    // MARK: Counting

    mutating func record(isRefusal: Bool, at now: Timestamp) {
        count(at: now) {
            $0.answers += 1
            if isRefusal { $0.refused += 1 }
        }
        beginBlockIfFull(Self.minute(of: now))
        blocks[blocks.count - 1].answers += 1
        if isRefusal { blocks[blocks.count - 1].refused += 1 }
    }

    /// Counts answers of an earlier time that were not refusals. They count in the current minute if theirs is over: an
    /// earlier minute would remove the later ones.
    mutating func record(successes count: Int, at time: Timestamp) {
        let minute = max(Self.minute(of: time), minutes.last?.since ?? 0)
        beginMinute(minute)
        minutes[minutes.count - 1].answers += count
        var rest = count
        while rest > 0 {
            beginBlockIfFull(minute)
            let added = min(rest, Self.answersPerBlock - blocks[blocks.count - 1].answers)
            blocks[blocks.count - 1].answers += added
            rest -= added
        }
    }

    private mutating func beginBlockIfFull(_ minute: Int64) {
        if let last = blocks.last, last.answers < Self.answersPerBlock { return }
        blocks = blocks.suffix(1) + [Counts(since: minute)]
    }

    /// Counts a grant that was ended.
    mutating func recordEnd(at now: Timestamp) { count(at: now) { $0.ended += 1 } }

    /// Removes the ends of the last minutes from the count, because those grants were recalled.
    mutating func forgetEnds() {
        for index in minutes.indices { minutes[index].ended = 0 }
    }

    /// Counts a rotated token that can no longer be stored, and returns the number of them in the last minutes.
    mutating func recordDroppedToken(at now: Timestamp) -> Int {
        count(at: now) { $0.dropped += 1 }
        return minutes.reduce(0) { $0 + $1.dropped }
    }

    private mutating func count(at now: Timestamp, _ change: (inout Counts) -> Void) {
        beginMinute(Self.minute(of: now))
        change(&minutes[minutes.count - 1])
    }

    /// Begins a minute unless it is the current one. Minutes that are older than the kept ones are added to the
    /// baseline.
    private mutating func beginMinute(_ minute: Int64) {
        guard minutes.last?.since != minute else { return }
        // Minutes from the future were counted before the clock was set back.
        minutes.removeAll { $0.since > minute }
        blocks.removeAll { $0.since > minute }
        let old = minutes.prefix { $0.since <= minute - Self.minutesKept }
        minutes.removeFirst(old.count)
        for minute in old {
            baseline.answers = min(baseline.answers + minute.answers, Self.maximumCount)
            baseline.ended = min(baseline.ended + minute.ended, Self.maximumCount)
        }
        let day = minute / (24 * 60)
        if baseline.since > 0, day > baseline.since {
            let halvings = min(day - baseline.since, 62)
            // Rounded up, so that a client with a single grant keeps a baseline.
            baseline.answers = (baseline.answers + (1 << halvings) - 1) >> halvings
            baseline.ended >>= halvings
        }
        baseline.since = day
        minutes.append(Counts(since: minute))
    }

    private static func minute(of now: Timestamp) -> Int64 { now.milliseconds / 60_000 }

    // MARK: Evaluation

    /// `true` once the client has got an answer more than ten minutes ago: from then on even a single refusal
    /// can be unusual.
    ///
    /// Before that the first one is believed, so that an operator who tries the worker out does not have to wait for a
    /// confirmation.
    private var hasBaseline: Bool { baseline.answers > 0 }

    /// Evaluates what is recorded. `uncounted` is 1 for a refusal that is not among the recorded answers.
    func level(at now: Timestamp, uncounted: Int = 0) -> Level {
        var current = self
        let minute = Self.minute(of: now)
        current.beginMinute(minute)
        let extra = current.hasBaseline ? uncounted : 0
        let overMinutes = current.level(
            answers: current.minutes.reduce(extra) { $0 + $1.answers },
            refused: current.minutes.reduce(extra) { $0 + $1.refused }
        )
        guard let oldest = current.blocks.first, oldest.since > minute - Self.minutesKept else { return overMinutes }
        let overAnswers = current.level(
            answers: current.blocks.reduce(extra) { $0 + $1.answers },
            refused: current.blocks.reduce(extra) { $0 + $1.refused }
        )
        return max(overMinutes, overAnswers)
    }

    /// Allows for chance with 1.5 standard deviations: a needless confirmation costs one request, a missing one the
    /// user's trust.
    private func level(answers: Int, refused: Int) -> Level {
        let rate = Double(baseline.ended + Self.prior.ended) / Double(baseline.answers + Self.prior.answers)
        let expected = Self.tolerated * rate * Double(answers)
        let allowance = hasBaseline ? 0.0 : 1.0
        guard Double(refused) > expected + 1.5 * expected.squareRoot() + allowance else { return .usual }
        return refused >= Self.minimumInWave ? .wave : .unusual
    }
}

/// The stored form: rows of numbers, with slashes between numbers and spaces between rows.
extension RefusalRate {
    init(_ body: JSONValue?) {
        minutes = Self.rows(body?["minutes"]).sorted { $0.since < $1.since }.suffix(Int(Self.minutesKept))
        blocks = Self.rows(body?["blocks"]).sorted { $0.since < $1.since }.suffix(2)
        // The stored row is since/answers/ended.
        let row = Self.rows(body?["baseline"]).first ?? Counts()
        baseline = Counts(since: row.since, answers: row.answers, ended: row.refused)
    }

    func write(into line: inout JSONLine) {
        line.field("minutes", Self.text(minutes))
        line.field("blocks", Self.text(blocks))
        line.field("baseline", "\(baseline.since)/\(baseline.answers)/\(baseline.ended)")
    }

    private static func text(_ rows: [Counts]) -> String {
        rows.map { "\($0.since)/\($0.answers)/\($0.refused)/\($0.ended)/\($0.dropped)" }.joined(separator: " ")
    }

    /// Parses rows. A number that a row lacks is zero, and damaged rows are left out.
    private static func rows(_ stored: JSONValue?) -> [Counts] {
        (stored?.string ?? "").split(separator: " ").prefix(16).compactMap { (row: Substring) -> Counts? in
            let found: [Int64] = row.split(separator: "/").prefix(5).compactMap { (text: Substring) in Int64(text) }
            guard !found.isEmpty, found.allSatisfy({ (0...1 << 40).contains($0) }) else { return nil }
            let numbers = (found + [0, 0, 0, 0]).map { Int($0) }
            return Counts(
                since: found[0],
                answers: numbers[1],
                refused: numbers[2],
                ended: numbers[3],
                dropped: numbers[4]
            )
        }
    }
}
