package import Base

/// The result of moving a grant to another client id on an operator's request: it was stored for the wrong one.
package enum ClientChange: Hashable, Sendable {
    case moved
    /// The grant was refused as if it belonged to another client id. It is tried again now.
    case movedAndDue
    /// A worker holds the grant's lease: its request names the former client id.
    case inFlight

    package static func move(
        _ grant: Grant,
        to clientID: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> ClientChange {
        if let lease = grant.lease, lease.isLive(at: transaction.leaseTime) { return .inFlight }
        var changed = grant
        let events = changed.changeClient(to: clientID, at: now)
        try transaction.update(changed)
        for event in events { try transaction.record(event) }
        return grant.mayBelongToAnotherClient && changed.dueAt == now ? .movedAndDue : .moved
    }
}

extension Grant {
    /// `true` if the refresh token was refused as one of another client id.
    var mayBelongToAnotherClient: Bool { [.clientMismatch, .clientMismatchUnconfirmed].contains(reason) }
}
