import Storage

/// An entry of the services file: a service that gets tokens, or an operator who looks up users.
package struct Service: Hashable, Sendable {
    /// The users or the scopes that a service may have.
    package enum Allowance: Hashable, Sendable {
        case everything
        case only(Set<String>)

        static let nothing = Allowance.only([])

        /// Compares bytes, as the store does: Swift treats two encodings of an accented letter as one text, but they
        /// name two users.
        func covers(_ name: String) -> Bool {
            switch self {
            case .everything: true
            case .only(let names): names.firstIndex(of: name).map { names[$0].utf8.elementsEqual(name.utf8) } ?? false
            }
        }
    }

    package let name: String
    /// The SHA-256 of the service's credential.
    let credentialHash: [UInt8]
    package let scopes: Allowance
    /// The users whose tokens it may have; an operator may look up the same users.
    package let users: Allowance
    /// `true` if it may look up users on the status page.
    package let isOperator: Bool

    init(name: String, credentialHash: [UInt8], scopes: Allowance, users: Allowance, isOperator: Bool = false) {
        self.name = name
        self.credentialHash = credentialHash
        self.scopes = scopes
        self.users = users
        self.isOperator = isOperator
    }
}

extension Service {
    /// The reason why a service may not have a token that it asked for.
    enum Refusal: Hashable, Sendable {
        case user
        /// The service only looks up users.
        case tokens
        /// The service must name scopes, and named none.
        case unnamedScopes
        case scopes

        var message: String {
            switch self {
            case .user: "this service may not have tokens of this user"
            case .tokens: "this service may not have tokens: its entry in the services file has no scopes"
            case .unnamedScopes: "this service must name the scopes that it needs"
            case .scopes: "this service may not have all of the requested scopes"
            }
        }
    }

    package func mayHaveTokens(ofUser userID: String) -> Bool { scopes != .nothing && users.covers(userID) }

    /// Returns the reason why the service may not have a token of a user for some scopes; `nil` if it may.
    ///
    /// Google's tokens carry all granted scopes and cannot be narrowed. So a limit on scopes applies to the scopes that
    /// a service requests. The service must request some, so that the audit shows the purpose of the token.
    func refusal(forUser userID: String, scopes requested: [ScopeName]) -> Refusal? {
        guard scopes != .nothing else { return .tokens }
        guard users.covers(userID) else { return .user }
        guard scopes != .everything else { return nil }
        guard !requested.isEmpty else { return .unnamedScopes }
        return requested.allSatisfy { scopes.covers($0.canonical) } ? nil : .scopes
    }
}
