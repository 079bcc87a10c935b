package import Base
package import Storage

extension AccountDeletion {
    /// The state of the revocation right after the deletion, or `nil` if there is no grant. Of several grants it is the
    /// one that takes longest.
    package var plannedEnd: RevocationEnd? { RevocationEnd.longest(of: ends.map(\.plannedEnd)) }

    /// Adds what the deletion of a user says.
    package func write(to line: inout JSONLine, ofUser user: String, revocation: RevocationEnd?) {
        line.field("user_id", user)
        line.field("ended_sessions", endedSessions)
        line.fieldOrNull("revocation", revocation?.rawValue)
    }
}
