package import Base

/// A position in the order of notices by time.
package struct NoticeCursor: Sendable {
    package var at: Timestamp
    package var sequence: Int64

    package init(at: Timestamp, sequence: Int64) {
        self.at = at
        self.sequence = sequence
    }
}
