package import Storage

/// Why a ``ConnectionTarget`` cannot get new tokens.
package enum ConnectionTargetError: Error, Hashable, Sendable {
    case unknownConnection
    case tooManyConnections(limit: Int)
    /// The account belongs to this other connection of the user.
    case accountIsConnected(ConnectionID)
}
