package import Base

/// A notice with the state of its delivery.
package struct ArchivedNotice: Hashable, Sendable {
    package var notice: Notice
    /// The time of the next delivery; `nil` if it waits for another notice of its user, or is finished.
    package var nextTryAt: Timestamp?
    package var acceptedAt: Timestamp?
    package var givenUpAt: Timestamp?

    package init(_ notice: Notice, nextTryAt: Timestamp?, acceptedAt: Timestamp?, givenUpAt: Timestamp?) {
        self.notice = notice
        self.nextTryAt = nextTryAt
        self.acceptedAt = acceptedAt
        self.givenUpAt = givenUpAt
    }
}
