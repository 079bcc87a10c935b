package import Base
package import Storage

/// A time that is kept as a note in the store, for a process that was not there at that time.
package enum NotedTime: String {
    /// The last `--run-once`. No process is alive between two passes.
    case lastPass = "last_pass"
    /// The last security event, or verification, that was received.
    case lastSecurityEvent = "security_events"

    package func read(from store: any Store) async throws -> Timestamp? {
        try await store.note(rawValue).flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }
    }

    /// Records a time.
    ///
    /// That of a security event is recorded at most once an hour, which is precise enough for a limit of days. Another
    /// process can record its own time simultaneously. It makes no difference which of them is kept.
    package func record(_ now: Timestamp, in store: any Store) async throws {
        let former = try await store.note(rawValue)
        if self == .lastSecurityEvent, let last = former.flatMap({ Int64($0) }),
            now - Timestamp(milliseconds: last) < .seconds(3600)
        {
            return
        }
        _ = try await store.replaceNote(rawValue, from: former, with: "\(now.milliseconds)")
    }
}
