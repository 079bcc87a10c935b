package import Storage

/// An entry of the services file: a service that gets tokens or manages grants, or an operator who looks up users.
package struct Service: Hashable, Sendable {
    /// The users, the connections or the scopes that a service can have.
    enum Allowance: Hashable, Sendable {
        case everything
        case only(Set<String>)
        /// The users whose own token the service presents, and nobody by name.
        case present

        static let nothing = Allowance.only([])

        /// Compares bytes, as the store does: Swift treats two encodings of an accented letter as one text, but they
        /// name two users.
        func covers(_ name: String) -> Bool {
            switch self {
            case .everything: true
            case .present: false
            case .only(let names): Self.contains(name, in: names)
            }
        }

        private static func contains(_ name: String, in names: Set<String>) -> Bool {
            guard let index = names.firstIndex(of: name) else { return false }
            return names[index].utf8.elementsEqual(name.utf8)
        }
    }

    let name: String
    let credentialHash: [UInt8]
    let scopes: Allowance
    /// The users whose tokens it can have, whose grants it can manage, and whom an operator can look up.
    let users: Allowance
    /// The connections of these users, by their ids.
    var connections = Allowance.everything
    /// `true` if it can look up users on the status page.
    var isOperator = false
    /// `true` if it can use the routes of ``AdministrationHandler``.
    var isManager = false
}

extension Service {
    /// `true` if the entry is for this connection of its users.
    func covers(_ connection: ConnectionID) -> Bool { connections.covers(connection.description) }

    /// Without a `connection` it is about any of the user's.
    package func mayHaveTokens(ofUser userID: String, connection: ConnectionID? = nil) -> Bool {
        guard scopes != .nothing, users.covers(userID) else { return false }
        guard let connection else { return true }
        return covers(connection)
    }

    /// Returns the reason why the service cannot have a token of a user for some scopes, or `nil` if it can.
    ///
    /// Google's tokens carry all granted scopes and cannot be narrowed. So a limit on scopes applies to the scopes that
    /// a service requests. The service must request some, so that the audit shows the purpose of the token.
    ///
    /// The user is present if the request has the user's own token.
    func refusal(
        forUser userID: String,
        isPresent: Bool = false,
        demands: TokenVendingRequest
    ) -> ServiceError? {
        let requested = demands.scopes
        if scopes == .nothing { return .forbiddenTokens }
        if users == .present {
            if !isPresent { return .absentUser }
        } else if !users.covers(userID) {
            return .forbiddenUser
        }
        guard covers(demands.connection) else { return .forbiddenConnection }
        if scopes == .everything { return nil }
        if requested.isEmpty { return .unnamedScopes }
        return requested.allSatisfy { scopes.covers($0.canonical) } ? nil : .forbiddenScopes
    }
}
