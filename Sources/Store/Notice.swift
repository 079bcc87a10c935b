package import Clocks

/// One message to the backend that a grant's state changed, as the outbox keeps it until it is accepted.
package struct Notice: Hashable, Sendable {
    /// The order of all notices of one store.
    package let sequence: Int64
    /// Drawn when the notice is made: a store that was put back from a backup counts anew from where the backup stood.
    package let nonce: UInt32
    package let grant: GrantID
    package let userID: String
    /// When the state changed.
    package let at: Timestamp
    package let from: GrantState
    package let to: GrantState
    package let reason: GrantReason
    /// Since when it waits to be accepted: since the change, or since it was asked for again.
    package internal(set) var pendingSince: Timestamp
    /// Deliveries that failed.
    package internal(set) var attempts: Int

    package init(
        sequence: Int64,
        nonce: UInt32,
        grant: GrantID,
        userID: String,
        at: Timestamp,
        from: GrantState,
        to: GrantState,
        reason: GrantReason,
        pendingSince: Timestamp,
        attempts: Int
    ) {
        self.sequence = sequence
        self.nonce = nonce
        self.grant = grant
        self.userID = userID
        self.at = at
        self.from = from
        self.to = to
        self.reason = reason
        self.pendingSince = pendingSince
        self.attempts = attempts
    }

    /// The same at every delivery, so that the backend can tell a repetition: `ntc_`, eight hexadecimal digits, `_`, a number.
    package var id: String {
        let digits = String(nonce, radix: 16)
        return "ntc_\(String(repeating: "0", count: 8 - digits.utf8.count))\(digits)_\(sequence)"
    }
}

extension GrantEvent {
    /// Whether the event changes what the user's profile shows, so that the backend is to hear of it.
    ///
    /// A retry that passes is nobody's business, and a first connection was brought by the backend's own user.
    package var changesConnection: Bool {
        guard let from, from != to else { return false }
        return !(from.isConnected && to.isConnected)
    }
}
