package import Base

/// One record of a store, without the parts that only make sense in that store.
package enum ArchiveRecord: Hashable, Sendable {
    /// The kinds of records, in an order in which each refers only to earlier ones.
    package enum Kind: String, CaseIterable, Sendable {
        case user
        case grant
        case event
        case session
        case clientHealth = "client_health"
        case securityEvent = "security_event"
        case notice
    }

    /// The key that orders the records of a kind: numbers by size, texts and bytes by their bytes.
    package enum Key: Hashable, Sendable {
        case number(Int64)
        case text(String)
        case bytes([UInt8])
    }

    case user(User)
    case grant(Grant)
    case event(sequence: Int64, GrantEvent)
    case session(Session)
    /// Bytes that only the engine reads; it drops the parts that depend on the clock of the former store.
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

    /// Creates the record of a grant without its lease, which is valid only in one store at one time.
    package init(_ grant: Grant) {
        var grant = grant
        grant.lease = nil
        self = .grant(grant)
    }
}

/// A notice with the state of its delivery.
package struct ArchivedNotice: Hashable, Sendable {
    package var notice: Notice
    /// The time of the next delivery; `nil` if it waits for another notice of its user, or is finished.
    package var nextTryAt: Timestamp?
    package var acceptedAt: Timestamp?
    package var givenUpAt: Timestamp?
}
