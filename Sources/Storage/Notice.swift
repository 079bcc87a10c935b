package import Base

/// One message to the backend about a user, kept in the outbox until it is accepted.
package struct Notice: Hashable, Sendable {
    /// The position in the order of all notices of one store.
    package let sequence: Int64
    /// A random number from the creation of the notice: a store that was restored from a backup repeats the sequence
    /// numbers since the backup.
    package let nonce: UInt32
    package let userID: String
    /// The time of the change.
    package let at: Timestamp
    package let content: Content
    /// The time since which it waits to be accepted: the change, or the latest replay.
    package internal(set) var pendingSince: Timestamp
    /// The number of failed deliveries.
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

    /// The same for every delivery, so that the backend recognises a repetition: `ntc_`, eight hexadecimal digits, `_`,
    /// a number.
    package var id: String {
        let digits = String(nonce, radix: 16)
        return "ntc_\(String(repeating: "0", count: 8 - digits.utf8.count))\(digits)_\(sequence)"
    }
}

extension Notice {
    /// Returns the content of the notice for an event; `nil` for an event that does not change the profile.
    package static func content(for event: GrantEvent) -> Content? {
        guard event.changesConnection, let from = event.from else { return nil }
        return .connection(of: event.grant, from: from, to: event.to, reason: event.reason)
    }
}

extension GrantEvent {
    /// `true` if the event changes what the user's profile shows, so that the backend is notified.
    ///
    /// A passing retry does not concern the backend, and a first connection came from the backend's own user.
    package var changesConnection: Bool {
        guard let from, from != to else { return false }
        return !(from.isConnected && to.isConnected)
    }
}
