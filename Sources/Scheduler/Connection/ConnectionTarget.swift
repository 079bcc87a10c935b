package import Storage

/// Which of a user's connections new tokens are for.
///
/// A request that names none means the default connection, which can switch to another account. A connection that is
/// named stays with its account.
///
///     let target = ConnectionTarget.new                         // one more account
///     switch try target.resolve(among: grants, account: jane, limit: 20) {
///     case .stored(let grant):                                  // Jane is connected already: this very connection
///     case .missing(let connection):                            // nil: it gets a random id
///     }
package enum ConnectionTarget: Hashable, Sendable {
    /// The connection of callers that name none.
    case `default`(maySwitch: Bool)
    /// One more account, or the connection that has this account already.
    case new
    /// This connection, which must exist.
    case named(ConnectionID)

    /// Limit of all connections of a user, whatever their state. Those that the user has ended stay in the list, so
    /// that they can be connected again.
    package static let maximumRows = 200

    /// Reads a request's `connection`, which is empty if there is none.
    package init?(_ text: String, refusesSwitch: Bool = false) {
        if text.isEmpty {
            self = .default(maySwitch: !refusesSwitch)
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
        case .default: ""
        case .new: ConnectionID.wordForNew
        case .named(let id): id.description
        }
    }

    /// `true` if tokens of another account than the connection's are refused.
    package var keepsAccount: Bool {
        switch self {
        case .default(let maySwitch): !maySwitch
        case .new: false
        case .named: true
        }
    }

    /// Finds the connection among all grants of the user. `account` is the owner of the tokens.
    ///
    /// A user's first connection is always the default one, whatever the request says: callers that name none find it.
    package func resolve(
        among grants: [Grant],
        account: Grant.Owner,
        limit: Int
    ) throws(ConnectionTargetError) -> ResolvedConnection {
        switch self {
        case .default(maySwitch: true):
            if let grant = grants.first(where: { $0.connection.isDefault }) { return .stored(grant) }
            return .missing(.default)
        case .default(maySwitch: false):
            return try Self.resolve(.default, among: grants, account: account, limit: limit)
        case .named(let id):
            return try Self.resolve(id, among: grants, account: account, limit: limit)
        case .new:
            return try Self.resolveNew(among: grants, account: account, limit: limit)
        }
    }

    private static func resolve(
        _ id: ConnectionID,
        among grants: [Grant],
        account: Grant.Owner,
        limit: Int
    ) throws(ConnectionTargetError) -> ResolvedConnection {
        let holder = grants.first { $0.connection != id && $0.isConnection(of: account) }
        guard let grant = grants.first(where: { $0.connection == id }) else {
            guard id.isDefault else { throw .unknownConnection }
            if let holder { throw .accountIsConnected(holder.connection) }
            return .missing(.default)
        }
        // A connection of another account is refused as such.
        if grant.owner.isOtherAccount(than: account) { return .stored(grant) }
        if let holder { throw .accountIsConnected(holder.connection) }
        try checkLimit(limit, ofReviving: grant, among: grants)
        return .stored(grant)
    }

    private static func resolveNew(
        among grants: [Grant],
        account: Grant.Owner,
        limit: Int
    ) throws(ConnectionTargetError) -> ResolvedConnection {
        if let grant = grants.first(where: { $0.isConnection(of: account) }) {
            try checkLimit(limit, ofReviving: grant, among: grants)
            return .stored(grant)
        }
        guard grants.contains(where: { $0.connection.isDefault }) else { return .missing(.default) }
        try checkLimit(limit, among: grants)
        let rows = max(limit, maximumRows)
        guard grants.count < rows else { throw .tooManyConnections(limit: rows) }
        return .missing(nil)
    }

    /// Throws if an ended connection would be one more than the limit allows once it is connected again. The default
    /// one never is: apps that know no other connection know no such refusal.
    private static func checkLimit(
        _ limit: Int,
        ofReviving grant: Grant,
        among grants: [Grant]
    ) throws(ConnectionTargetError) {
        if grant.connection.isDefault || grant.countsAgainstLimit { return }
        try checkLimit(limit, among: grants)
    }

    private static func checkLimit(_ limit: Int, among grants: [Grant]) throws(ConnectionTargetError) {
        guard grants.count(where: \.countsAgainstLimit) < limit else { throw .tooManyConnections(limit: limit) }
    }
}

extension Grant {
    /// `true` unless the user has ended this connection or left its account, or it is forgotten.
    fileprivate var countsAgainstLimit: Bool { ![.userRequest, .accountMoved, .forgotten].contains(reason) }
}
