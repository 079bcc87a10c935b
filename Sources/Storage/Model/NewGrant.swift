/// A grant of a connection that is new, and the beginning of its history.
package struct NewGrant: Sendable {
    package let grant: Grant
    package let events: [GrantEvent]

    package init(grant: Grant, events: [GrantEvent]) {
        self.grant = grant
        self.events = events
    }
}
