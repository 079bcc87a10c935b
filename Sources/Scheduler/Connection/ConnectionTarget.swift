package import Storage

/// Which of a user's connections new tokens are for.
///
/// A request that names none means the default connection, which can switch to another account. A connection that is
/// named stays with its account.
///
///     let target = ConnectionTarget("new")                      // one more account
///     switch try target.resolve(among: grants, account: jane, limit: 20) {
///     case .stored(let grant):                                  // Jane is connected already: this very connection
///     case .missing(let connection):                            // nil: it gets a random name
///     }
package enum ConnectionTarget: Hashable, Sendable {
    /// The connection of callers that name none.
    case standard
    /// One more account, or the connection that has this account already.
    case new
    /// This connection, which must exist.
    case named(ConnectionID)

    /// Reads a request's `connection`.
    package init?(_ text: String) {
        if text.isEmpty {
            self = .standard
        } else if text == ConnectionID.wordForNew {
            self = .new
        } else {
            guard let id = ConnectionID(text) else { return nil }
            self = .named(id)
        }
    }

    /// The request's `connection`, which is empty if there is none.
    package var text: String {
        switch self {
        case .standard: ""
        case .new: ConnectionID.wordForNew
        case .named(let id): id.description
        }
    }

    /// The target of a request that may refuse a switch. Then the default connection keeps its account, as a named one
    /// does.
    package func refusingSwitch(_ refusesSwitch: Bool) -> ConnectionTarget {
        guard self == .standard, refusesSwitch else { return self }
        return .named(.default)
    }

    /// Where the tokens go, by what is stored.
    package enum Resolution: Sendable {
        case stored(Grant)
        /// There is no such connection yet. It gets this name, or a random one for `nil`.
        case missing(ConnectionID?)

        package var stored: Grant? {
            switch self {
            case .stored(let grant): grant
            case .missing: nil
            }
        }

        /// The name that a connection gets that does not exist yet, or `nil` if any will do.
        package var missingName: ConnectionID? {
            switch self {
            case .stored: nil
            case .missing(let name): name
            }
        }
    }

    /// Finds the connection among all grants of the user. `account` is the owner of the tokens.
    ///
    /// A user's first connection is always the default one, whatever the request says: callers that name none find it.
    package func resolve(
        among grants: [Grant],
        account: Grant.Owner,
        limit: Int
    ) throws(ConnectionTargetError) -> Resolution {
        switch self {
        case .standard:
            if let grant = grants.first(where: { $0.connection.isDefault }) { return .stored(grant) }
            return .missing(.default)
        case .named(let id):
            let holder = grants.first { $0.connection != id && $0.isConnection(of: account) }
            guard let grant = grants.first(where: { $0.connection == id }) else {
                guard id.isDefault else { throw .unknownConnection }
                if let holder { throw .accountIsConnected(holder.connection) }
                return .missing(.default)
            }
            // A connection of another account is refused as such.
            if let holder, !grant.owner.isOtherAccount(than: account) {
                throw .accountIsConnected(holder.connection)
            }
            return .stored(grant)
        case .new:
            if let grant = grants.first(where: { $0.isConnection(of: account) }) { return .stored(grant) }
            guard grants.contains(where: { $0.connection.isDefault }) else { return .missing(.default) }
            guard grants.count(where: \.countsAgainstLimit) < limit else { throw .tooManyConnections(limit: limit) }
            guard grants.count < Self.maximumRows else { throw .tooManyConnections(limit: Self.maximumRows) }
            return .missing(nil)
        }
    }

    /// Connections that a user has ended stay in the list, so that they can be connected again. More than these are
    /// refused, whatever their state.
    package static let maximumRows = 200
}

extension Grant {
    /// `true` unless the user has ended this connection or left its account, or it is forgotten.
    fileprivate var countsAgainstLimit: Bool { ![.userRequest, .accountMoved, .forgotten].contains(reason) }
}

package enum ConnectionTargetError: Error, Hashable, Sendable {
    case unknownConnection
    case tooManyConnections(limit: Int)
    /// The account belongs to this other connection of the user.
    case accountIsConnected(ConnectionID)
}
