import Store

/// A service of the user's backend that may get access tokens.
package struct Service: Hashable, Sendable {
    /// The users or the scopes that a service may have.
    package enum Allowance: Hashable, Sendable {
        case everything
        case only(Set<String>)

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
    package let scopes: Allowance
    package let users: Allowance

    package init(name: String, scopes: Allowance, users: Allowance) {
        self.name = name
        self.scopes = scopes
        self.users = users
    }
}

extension Service {
    /// Returns the reason why the service may not have a token of a user for some scopes; `nil` if it may.
    ///
    /// Google's tokens carry all granted scopes and cannot be narrowed. So a limit on scopes applies to the scopes that
    /// a service requests. The service must request some, so that the audit shows the purpose of the token.
    func refusal(forUser userID: String, scopes requested: [ScopeName]) -> String? {
        guard users.covers(userID) else { return "this service may not have tokens of this user" }
        guard scopes != .everything else { return nil }
        guard !requested.isEmpty else { return "this service must name the scopes that it needs" }
        guard requested.allSatisfy({ scopes.covers($0.canonical) }) else {
            return "this service may not have all of the requested scopes"
        }
        return nil
    }
}
