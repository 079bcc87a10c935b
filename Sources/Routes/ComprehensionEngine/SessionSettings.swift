package import Base
private import Storage

/// The settings of the app's own sessions.
package struct SessionSettings: Hashable, Sendable {
    /// The time after a refresh in which any token of the family gets the current tokens.
    package var grace: Duration
    /// The end of the time in which refresh tokens of the former backend begin a session; `nil` if they never do.
    package var acceptFormerTokensUntil: Timestamp?

    package init(grace: Duration = Session.defaultGrace, acceptFormerTokensUntil: Timestamp? = nil) {
        self.grace = grace
        self.acceptFormerTokensUntil = acceptFormerTokensUntil
    }
}
