import Store

/// One of the user's own services that may have access tokens.
package struct Service: Hashable, Sendable {
    /// What a service may have of a kind.
    package enum Allowance: Hashable, Sendable {
        case everything
        case only(Set<String>)

        /// Compares bytes, as the store does: to Swift two ways to write an accented letter are one text, and yet they name
        /// two users.
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
    /// Why the service may not have a token of a user for some scopes; `nil` when it may.
    ///
    /// Google's tokens carry all granted scopes and cannot be narrowed. A limit to scopes is thus a limit to what a service
    /// may ask for, and it must ask for something, so that the audit says what the token was for.
    func objection(toUser userID: String, scopes asked: [ScopeName]) -> String? {
        guard users.covers(userID) else { return "this service may not have tokens of this user" }
        guard scopes != .everything else { return nil }
        guard !asked.isEmpty else { return "this service must name the scopes that it wants the token for" }
        guard asked.allSatisfy({ scopes.covers($0.canonical) }) else {
            return "this service may not have all of the scopes asked for"
        }
        return nil
    }
}
