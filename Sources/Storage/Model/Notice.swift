package import Base

/// One message to the backend about a user, kept in the outbox until it is accepted.
///
/// One queue for each user keeps the order: `user.deleted` always follows the last notice of the user's grants.
package struct Notice: Hashable, Sendable {
    /// The place of a notice in its store.
    package struct Key: Hashable, Sendable {
        package let userID: String
        /// Counts the notices of the user, in their order.
        package let number: Int64

        package init(userID: String, number: Int64) {
            self.userID = userID
            self.number = number
        }
    }

    package let key: Key
    /// The same for every delivery, so that the backend recognises a repetition.
    package let id: NoticeID
    /// The time of the change.
    package let at: Timestamp
    /// The trace of the request that made the change, if it sent one.
    package let trace: TraceContext?
    package let content: Content
    /// Since when it waits to be accepted: the change, or the latest replay.
    package internal(set) var pendingSince: Timestamp
    /// Failed deliveries.
    package internal(set) var attempts: Int

    package var userID: String { key.userID }
}

extension Notice {
    /// Returns the content of the notice for an event, or `nil` for an event that does not change the profile.
    static func content(for event: GrantEvent, of grant: Grant) -> Content? {
        guard event.changesConnection, let from = event.from else { return nil }
        return .connection(of: Subject(grant), from: from, to: event.to, reason: event.reason)
    }
}

extension GrantEvent {
    /// `true` if the event changes what the user's profile shows, so that the backend is notified.
    ///
    /// A passing retry does not concern the backend, and a first connection came from the backend's own user. With a
    /// notice for each change of state, an outage of Google would post two for every grant.
    var changesConnection: Bool {
        guard let from, from != to else { return false }
        let staysConnected = from.isConnected && to.isConnected
        return !staysConnected
    }
}

extension Notice {
    /// The grant that a notice is about, with what the backend knows it by. The notice outlives the grant.
    package struct Subject: Hashable, Sendable {
        package let grant: GrantID
        package let connection: ConnectionID
        package let labels: ConnectionLabels

        package init(grant: GrantID, connection: ConnectionID, labels: ConnectionLabels) {
            self.grant = grant
            self.connection = connection
            self.labels = labels
        }

        package init(_ grant: Grant) {
            self.init(grant: grant.id, connection: grant.connection, labels: grant.labels)
        }
    }

    /// The content of a notice.
    package enum Content: Hashable, Sendable {
        /// A grant changed its state in a way that the profile shows.
        case connection(of: Subject, from: GrantState, to: GrantState, reason: GrantReason)
        /// An answer to a refresh grants fewer scopes than before. Both lists are separated by spaces.
        case lostScopes(of: Subject, lost: String, granted: String)
        /// The refresh token of a grant expires soon.
        case expiring(of: Subject, at: Timestamp)
        /// A refresh token of a session was presented after its successor was used, so the session has ended.
        case sessionReused(SessionID)
        /// The user was deleted.
        case userDeleted

        /// What the notice is about, if it is about a grant.
        package var subject: Subject? {
            switch self {
            case .connection(let subject, _, _, _), .lostScopes(let subject, _, _), .expiring(let subject, _): subject
            case .sessionReused, .userDeleted: nil
            }
        }

        /// The notice's type, as the backend and the metrics log show it.
        package var type: String {
            switch self {
            case .connection(_, _, let to, _): to.isConnected ? "grant.connected" : "grant.disconnected"
            case .lostScopes: "grant.scopes_lost"
            case .expiring: "grant.expiring"
            case .sessionReused: "session.reuse_detected"
            case .userDeleted: "user.deleted"
            }
        }
    }
}

/// The notices at the head of each user's queue that wait for delivery.
package struct PendingNotices: Hashable, Sendable {
    /// A store reads no more notices.
    package static let limit = 1000

    /// Their number, at most ``limit``.
    package var count: Int
    /// Since when the oldest of them waits.
    package var oldest: Timestamp?
}
