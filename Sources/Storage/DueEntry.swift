package import Base

/// One entry of a client's part of the due index.
package struct DueEntry: Hashable, Sendable {
    package var dueAt: Timestamp
    package var id: GrantID

    package init(dueAt: Timestamp, id: GrantID) {
        self.dueAt = dueAt
        self.id = id
    }
}
