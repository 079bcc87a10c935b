import Base
import Storage

/// A user as `users list` and `users show` print it for people.
extension User {
    /// Everything known about the user, for people.
    func lines(with grants: [Grant], at now: Timestamp) -> [String] {
        let deleted = deletedUntil.map { "deleted; the id is refused until \($0.shown(at: now))" }
        var address = email?.escapingInvisible ?? "-"
        if email != nil, let emailIsVerified { address += emailIsVerified ? ", verified" : ", not verified" }
        let account = googleUserID.map { "id \($0.escapingInvisible)" } ?? "id unknown"
        let grant = grants.first { $0.connection.isDefault }
        let connection = grant.map { "\($0.stateWithReason), since \($0.since.shown(at: now))" } ?? "none"
        let facts: KeyValuePairs<String, String> = [
            "user": id.escapingInvisible,
            "state": deleted ?? status,
            "e-mail": address,
            "name": (name ?? grant?.owner.name)?.escapingInvisible ?? "-",
            "google account": account,
            "last sign-in": lastLoginAt?.shown(at: now) ?? "-",
            "created": createdAt.shown(at: now),
            "grant": connection,
        ]
        return facts.lines
            + grants.filter { !$0.connection.isDefault }.map { other in
                let account = other.owner.email?.escapingInvisible ?? "e-mail unknown"
                return "connection \(other.connection): \(account), \(other.stateWithReason)"
            }
    }

    /// The user's status in a word.
    var status: String {
        guard !isDeleted else { return "deleted" }
        return isActive ? "active" : "inactive"
    }
}
