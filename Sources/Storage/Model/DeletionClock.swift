package import Base

/// The time by which old data is deleted: the wall clock, without its steps forward.
///
/// A deletion cannot be undone. While a clock is an hour or a year ahead, everything that expires within that time
/// would be lost for good. So deletions follow the wall clock only as far as time is known to have passed.
///
///     The worker runs at 12:00. The wall clock steps to 12:00 of the next year.
///     Deletions go on at 12:01, 12:02, … of this year, also after a restart of the worker or of the machine.
///     A person who knows that the clock is right confirms it: refresh-worker store clock --clock-is-right.
///
/// All workers of a database continue one stored clock, so that a step is known to whoever deletes. The very first
/// reading of a database is believed.
package struct DeletionClock: Hashable, Sendable {
    /// A smaller difference between the progress of two clocks is not a step.
    private static let tolerance: Duration = .seconds(2)
    /// The passed time is unknown after a restart of the machine, and after a reading of another machine. A restart
    /// takes less than this.
    package static let believedRestart: Duration = .seconds(900)
    /// A clock that is further ahead is worth a person's look. Less only delays deletions a little.
    package static let tolerableLag: Duration = .seconds(86_400)

    /// The last reading that was compared.
    private var last: ClockReading
    /// How far the wall clock has moved since the first reading, beyond the time that is known to have passed. It is
    /// negative after a step back, so that the step forward which undoes it counts for nothing.
    private var unexplained: Duration

    /// Begins with a reading that is believed.
    package init(believing reading: ClockReading) {
        last = reading
        unexplained = .zero
    }

    /// How far the time of deletions is behind the wall clock.
    package var lag: Duration { max(.zero, unexplained) }

    /// The time by which old data is deleted, as of the last reading.
    package var now: Timestamp { last.now - lag }

    /// What a person has to know and to do, or `nil` if the clock is not far behind.
    package var warning: String? {
        guard lag >= Self.tolerableLag else { return nil }
        return """
            old data is deleted by \(now.iso8601Seconds), \(lag.inTwoUnits) behind the wall clock, which was set forward \
            or whose machine was off: compare it (timedatectl), and if it is right, run: \
            refresh-worker store clock --clock-is-right
            """
    }

    /// Follows the wall clock as far as time has passed.
    package mutating func advance(to reading: ClockReading) {
        unexplained += Self.unexplainedStep(from: last, to: reading)
        last = reading
    }

    private static func unexplainedStep(from former: ClockReading, to reading: ClockReading) -> Duration {
        let progress = reading.now - former.now
        guard former.bootID == reading.bootID else {
            let isRestart = progress >= .zero && progress <= believedRestart
            return isRestart ? .zero : progress
        }
        let step = progress - (reading.sinceBoot - former.sinceBoot)
        let isStep = step > tolerance || step < .zero - tolerance
        return isStep ? step : .zero
    }
}

/// The stored form: the unexplained time in milliseconds, and the last reading.
extension DeletionClock {
    init?(stored text: String) {
        let parts = text.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let unexplained = Int64(parts[0]),
            let last = ClockReading(stored: String(parts[1]))
        else {
            return nil
        }
        self.last = last
        self.unexplained = .milliseconds(unexplained)
    }

    var stored: String { "\(unexplained.wholeMilliseconds) \(last.stored)" }
}

extension Store {
    private var deletionClockNote: String { "deletion_clock" }

    /// Returns the clock of deletions as of now, without storing it.
    package func deletionClock(by time: any TimeSource) async throws -> DeletionClock {
        let stored = try await note(deletionClockNote)
        return try await continued(stored, by: time)
    }

    /// Continues the clock of deletions to now, stores it and returns it.
    @discardableResult
    package func advanceDeletionClock(by time: any TimeSource) async throws -> DeletionClock {
        let stored = try await note(deletionClockNote)
        let clock = try await continued(stored, by: time)
        // If another process has stored it in the meantime, that reading counts.
        _ = try await replaceNote(deletionClockNote, from: stored, with: clock.stored)
        return clock
    }

    /// Believes the wall clock from now on, because a person has confirmed it.
    package func confirmClock(by time: any TimeSource) async throws -> DeletionClock {
        let maximumTries = 10
        for _ in 0..<maximumTries {
            let stored = try await note(deletionClockNote)
            let clock = DeletionClock(believing: reading(of: time))
            if try await replaceNote(deletionClockNote, from: stored, with: clock.stored) { return clock }
        }
        throw StoreError(.busy, "Other processes stored their readings of the clock at the same time: run it again.")
    }

    /// The clocks are read after the notes, because a store on a server learns the server's time with each response.
    private func continued(_ stored: String?, by time: any TimeSource) async throws -> DeletionClock {
        let former: DeletionClock?
        if let stored {
            former = DeletionClock(stored: stored)
        } else {
            // The database of an earlier version has only the last reading of its last process.
            former = try await clockReading().map { DeletionClock(believing: $0) }
        }
        let reading = reading(of: time)
        guard var clock = former else { return DeletionClock(believing: reading) }
        clock.advance(to: reading)
        return clock
    }

    /// Reads both clocks at one instant.
    package func reading(of time: any TimeSource) -> ClockReading {
        ClockReading(now: time.now, sinceBoot: time.sinceBoot, bootID: bootID)
    }
}
