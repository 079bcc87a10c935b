package import Clocks

/// One message to the backend about a user, as the outbox keeps it until it is accepted.
package struct Notice: Hashable, Sendable {
    /// The order of all notices of one store.
    package let sequence: Int64
    /// Drawn when the notice is made: a store that was put back from a backup counts anew from where the backup stood.
    package let nonce: UInt32
    package let userID: String
    /// The time of what happened.
    package let at: Timestamp
    package let content: Content
    /// Since when it waits to be accepted: since the change, or since it was asked for again.
    package internal(set) var pendingSince: Timestamp
    /// Deliveries that failed.
    package internal(set) var attempts: Int

    package init(
        sequence: Int64,
        nonce: UInt32,
        userID: String,
        at: Timestamp,
        content: Content,
        pendingSince: Timestamp,
        attempts: Int
    ) {
        self.sequence = sequence
        self.nonce = nonce
        self.userID = userID
        self.at = at
        self.content = content
        self.pendingSince = pendingSince
        self.attempts = attempts
    }

    /// The same at every delivery, so that the backend can tell a repetition: `ntc_`, eight hexadecimal digits, `_`, a number.
    package var id: String {
        let digits = String(nonce, radix: 16)
        return "ntc_\(String(repeating: "0", count: 8 - digits.utf8.count))\(digits)_\(sequence)"
    }
}

extension Notice {
    /// The content of the notice that an event calls for; `nil` for an event that does not change what the profile shows.
    package static func content(for event: GrantEvent) -> Content? {
        guard event.changesConnection, let from = event.from else { return nil }
        return .connection(of: event.grant, from: from, to: event.to, reason: event.reason)
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
