package import Base
package import Storage

extension AccountDeletion {
    /// The state of the revocation right after the deletion, or `nil` if there is no grant.
    package var plannedEnd: RevocationEnd? { grant.map { RevocationEnd(of: $0, isShared: isShared) } }

    /// Adds what the deletion of a user says.
    package func write(to line: inout JSONLine, ofUser user: String, _ revocation: RevocationEnd?) {
        line.field("user_id", user)
        line.field("ended_sessions", endedSessions)
        line.fieldOrNull("revocation", revocation?.rawValue)
    }
}
