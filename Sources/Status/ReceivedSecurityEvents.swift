package import Base
package import Storage

/// The times of the last security events that were received, kept as a note in the store.
package struct ReceivedSecurityEvents: Equatable, Sendable {
    private static let note = "security_events"
    /// Notes are written at most this often: an hour is precise enough for a limit of days.
    private static let precision: Duration = .seconds(3600)

    package var lastAt: Timestamp?

    package init(lastAt: Timestamp? = nil) {
        self.lastAt = lastAt
    }

    package init(from store: any GrantStore) async throws {
        lastAt = try await store.note(Self.note).flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }
    }

    /// Records that an event, or a verification, was received.
    ///
    /// Another worker may record one at the same time; it makes no difference which of them is kept.
    package static func record(in store: any GrantStore, at now: Timestamp) async throws {
        let former = try await store.note(note)
        if let last = former.flatMap({ Int64($0) }), now - Timestamp(milliseconds: last) < precision { return }
        _ = try await store.replaceNote(note, former, with: "\(now.milliseconds)")
    }
}
