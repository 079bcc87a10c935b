package import Base

/// What an import must know about a user before it stores a grant of the user.
package struct UserStanding: Sendable {
    /// `true` if the user was deleted, and the tombstone is still stored.
    package var isDeleted = false
    /// The grants, unless the user was deleted.
    package var grants: [Grant] = []
    /// When the user disconnected while there was no grant, if that was lately.
    package var disconnectedAt: Timestamp?

    /// A user about whom nothing is stored.
    package init() {}

    package func grant(of connection: ConnectionID) -> Grant? { grants.first { $0.connection == connection } }

    /// Takes over a grant that was added or changed.
    package mutating func set(_ grant: Grant) {
        grants.removeAll { $0.id == grant.id }
        grants.append(grant)
    }
}

/// The standings of several users.
package struct UserStandings: Sendable {
    /// By the bytes of the id, which the databases compare.
    ///
    /// Two ids can differ in their bytes and still be equal as `String`: é in one character, or as e with an accent.
    private var standings: [[UInt8]: UserStanding] = [:]

    package init() {}

    package subscript(userID: String) -> UserStanding {
        get { standings[Array(userID.utf8)] ?? UserStanding() }
        set { standings[Array(userID.utf8)] = newValue }
    }
}
