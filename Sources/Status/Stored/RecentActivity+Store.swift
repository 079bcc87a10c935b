package import Base
package import Storage
package import Telemetry

/// The recent refreshes of all workers, kept as a note in the store for the status page.
extension RecentActivity {
    private static let note = "activity"
    private static let tries = 3

    package static func read(from store: any Store) async throws -> RecentActivity {
        RecentActivity(try await store.note(note) ?? "")
    }

    /// Adds these refreshes of one worker, and returns `false` if others wrote at the same time.
    package func publish(in store: any Store, at now: Timestamp) async throws -> Bool {
        for _ in 0..<Self.tries {
            let former = try await store.note(Self.note)
            var all = RecentActivity(former ?? "")
            all.add(self, at: now)
            if try await store.replaceNote(Self.note, from: former, with: all.text) { return true }
        }
        return false
    }
}
