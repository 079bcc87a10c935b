import Base
import Storage

extension Command {
    /// `store clock`: shows the clock by which old data is deleted, and confirms the wall clock.
    static let showClock = Command(
        words: ["store", "clock"],
        summary: "show the clock by which old data is deleted, or confirm that the wall clock is right",
        discussion: """
            Expired sessions, deleted users, used tokens and ended grants are deleted for good. So deletions do not \
            follow a wall clock that was set forward. They go by a clock of their own, which only counts time that is \
            known to have passed. They are late after the clock was set forward, and after the machine was off for more \
            than \(DeletionClock.believedRestart.inTwoUnits). With --clock-is-right they follow the wall clock again. What has expired by the wall clock is \
            then deleted, which cannot be undone: compare the clock first (timedatectl, 'refresh-worker doctor').
            """,
        options: [
            .toggle("clock-is-right", "confirm that the wall clock is right, and delete by it from now on"),
            .jsonObject,
        ],
        settings: [.config, .database, .logLevel],
        examples: ["refresh-worker store clock --clock-is-right": "the clock is right: delete by it"],
        exitCodes: .ofDatabase()
    ) { arguments, context, output in
        let isConfirmed = arguments.has("clock-is-right")
        let clock = try await context.withExistingStore(for: isConfirmed ? .changing : .reading) { store in
            if isConfirmed {
                try await store.confirmClock(by: context.time)
            } else {
                try await store.deletionClock(by: context.time)
            }
        }
        let now = context.time.now
        let lag = clock.lag.wholeMilliseconds > 0 ? ", \(clock.lag.inTwoUnits) behind the wall clock" : ""
        output.answer(
            """
            wall clock       \(now.iso8601Seconds)
            deletions go by  \(clock.now.iso8601Seconds)\(lag)
            """
        ) { line in
            line.field("wall_clock", now.iso8601)
            line.field("deletions_by", clock.now.iso8601)
            line.field("lag_ms", clock.lag.wholeMilliseconds)
        }
        return .success
    }
}
