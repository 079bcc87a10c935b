package import Clocks

/// One thing that a store keeps, whole and without what belongs to that store alone.
package enum ArchiveRecord: Hashable, Sendable {
    /// What can be copied, in the order in which one refers to the other.
    package enum Kind: String, CaseIterable, Sendable {
        case user
        case grant
        case event
        case session
        case clientHealth = "client_health"
        case securityEvent = "security_event"
        case notice
    }

    /// What the records of a kind are ordered by: numbers by size, texts and bytes by their bytes.
    package enum Key: Hashable, Sendable {
        case number(Int64)
        case text(String)
        case bytes([UInt8])
    }

    case user(User)
    case grant(Grant)
    case event(sequence: Int64, GrantEvent)
    case session(Session)
    /// Bytes that only the engine understands; what in them goes by the clock of a former store it leaves out itself.
    case clientHealth(clientID: String, [UInt8])
    case securityEvent(identifier: String, at: Timestamp)
    case notice(ArchivedNotice)

    package var kind: Kind {
        switch self {
        case .user: .user
        case .grant: .grant
        case .event: .event
        case .session: .session
        case .clientHealth: .clientHealth
        case .securityEvent: .securityEvent
        case .notice: .notice
        }
    }

    package var key: Key {
        switch self {
        case .user(let user): .text(user.id)
        case .grant(let grant): .number(grant.id.rawValue)
        case .event(let sequence, _): .number(sequence)
        case .session(let session): .bytes(session.id.bytes)
        case .clientHealth(let clientID, _): .text(clientID)
        case .securityEvent(let identifier, _): .text(identifier)
        case .notice(let notice): .number(notice.notice.sequence)
        }
    }

    /// A grant as a record: a lease is a right in one store, at one moment.
    package init(_ grant: Grant) {
        var grant = grant
        grant.lease = nil
        self = .grant(grant)
    }
}

/// A notice, and what became of it so far.
package struct ArchivedNotice: Hashable, Sendable {
    package var notice: Notice
    /// When it is to be delivered; `nil` for one that waits for another of its user, or is settled.
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
