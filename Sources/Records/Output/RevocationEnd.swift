package import Base
package import Storage

/// The state of the revocation at Google after a grant has ended here.
package enum RevocationEnd: String, Sendable {
    /// Google has revoked the grant, or there was no token to revoke.
    case done
    /// A running worker tries again for a day.
    case pending
    /// Another stored grant shares the Google account and would end with it.
    case shared = "not_requested"

    /// Returns the state of several revocations: pending while one of them is.
    package static func longest(of ends: [RevocationEnd]) -> RevocationEnd? {
        [RevocationEnd.pending, .shared, .done].first { ends.contains($0) }
    }

    /// The state right after the end, before Google is asked.
    init(of grant: Grant, isShared: Bool) {
        self = isShared ? .shared : grant.revocationAskedAt == nil ? .done : .pending
    }

    /// Adds what the end of a user's connection says.
    package func write(to line: inout JSONLine, ofUser user: String, connection: ConnectionID) {
        line.field("user_id", user)
        line.field("revocation", rawValue)
        line.field("connection", connection.description)
    }
}

extension GrantDisconnection {
    /// The state of the revocation right after the end.
    package var plannedEnd: RevocationEnd { RevocationEnd(of: grant, isShared: isShared) }
}
