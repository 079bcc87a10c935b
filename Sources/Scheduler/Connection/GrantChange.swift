package import Storage

/// A grant with new tokens, and what its history and those of the user's other connections gain.
package struct GrantChange: Sendable {
    package let grant: Grant
    package let events: [GrantEvent]

    package init(grant: Grant, events: [GrantEvent]) {
        self.grant = grant
        self.events = events
    }
}
