import Base
import Storage

/// Detects steps of the wall clock, by comparison with the boot clock.
struct ClockMonitor: Sendable {
    /// The difference between the progress of the wall clock and of the boot clock that counts as a step.
    static let tolerance: Duration = .seconds(2)
    private static let shortestInterval: Duration = .seconds(1)

    /// The reaction to a reading.
    enum Reaction: Equatable {
        case nothing
        /// The reading must be stored for the next process.
        case record
        /// The times that a clock ahead of time stored must be repaired. `isNew` is `true` until the same step is seen
        /// again.
        case repair(step: Duration, isNew: Bool)
    }

    private var last: ClockReading?
    /// The last reading before a step whose effects are not repaired in the store yet.
    private var beforeStep: ClockReading?

    /// `true` before the first comparison, which also needs the reading that the last process stored.
    var isFirst: Bool { last == nil }
    /// `true` if a reading can be stored for the next process, which otherwise must find the same step.
    var mayRecord: Bool { last != nil && beforeStep == nil }

    func isDue(at reading: ClockReading) -> Bool {
        last.map { reading.sinceBoot - $0.sinceBoot >= Self.shortestInterval } ?? true
    }

    /// Compares a reading with the last one, or, in a new process, with the stored one.
    mutating func compare(_ reading: ClockReading, stored: ClockReading?) -> Reaction {
        let isFirst = isFirst
        let isRepeated = beforeStep != nil
        let former = beforeStep ?? last ?? stored ?? reading
        last = reading
        let step = Self.step(from: former, to: reading)
        guard step > Self.tolerance || step < .zero - Self.tolerance else {
            beforeStep = nil
            return isFirst ? .record : .nothing
        }
        // The reading is kept until the repair is done, so that the next comparison detects the same step again.
        beforeStep = former
        return .repair(step: step, isNew: !isRepeated)
    }

    mutating func repaired() { beforeStep = nil }

    /// Returns how far the wall clock moved beyond the time that passed.
    ///
    /// Across a restart of the machine the passed time is unknown, so only a clock that went backwards is detected.
    static func step(from former: ClockReading, to reading: ClockReading) -> Duration {
        let byWall = reading.now - former.now
        guard former.bootID == reading.bootID else { return min(byWall, .zero) }
        return byWall - (reading.sinceBoot - former.sinceBoot)
    }
}
