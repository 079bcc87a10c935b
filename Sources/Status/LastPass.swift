package import Base
package import Storage

/// The time of the last `--run-once`, kept as a note in the store: no process is alive between two passes.
package enum LastPass {
    private static let note = "last_pass"

    package static func read(from store: any GrantStore) async throws -> Timestamp? {
        try await store.note(note).flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }
    }

    /// Records that a pass begins.
    ///
    /// Another pass can record its own at the same time. It makes no difference which of them is kept.
    package static func record(in store: any GrantStore, at now: Timestamp) async throws {
        _ = try await store.replaceNote(note, try await store.note(note), with: "\(now.milliseconds)")
    }
}
