package import Base
private import Synchronization

/// The last changes of grants' states that this worker made.
package final class RecentChanges: Sendable {
    package struct Change: Hashable, Sendable {
        package var at: Timestamp
        /// The grant's id, 16 hexadecimal digits: it names no user.
        package var grant: String
        package var from: String
        package var to: String
        /// The code of the reason, or an empty text.
        package var reason: String

        package init(at: Timestamp, grant: String, from: String, to: String, reason: String) {
            self.at = at
            self.grant = grant
            self.from = from
            self.to = to
            self.reason = reason
        }
    }

    package static let limit = 20

    private let changes = Mutex<[Change]>([])

    package init() {}

    package func record(_ change: Change) {
        changes.withLock { changes in
            if changes.count == Self.limit { changes.removeLast() }
            changes.insert(change, at: 0)
        }
    }

    /// The changes, the newest first.
    package var all: [Change] { changes.withLock { $0 } }
}
