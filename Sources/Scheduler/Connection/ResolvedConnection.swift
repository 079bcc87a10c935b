package import Storage

/// Where new tokens go, by what is stored.
package enum ResolvedConnection: Sendable {
    case stored(Grant)
    /// There is no such connection yet. It gets this id, or a random one for `nil`.
    case missing(ConnectionID?)

    package var stored: Grant? {
        switch self {
        case .stored(let grant): grant
        case .missing: nil
        }
    }

    /// The id that a connection gets that does not exist yet, or `nil` if any will do.
    package var missingID: ConnectionID? {
        switch self {
        case .stored: nil
        case .missing(let id): id
        }
    }
}
