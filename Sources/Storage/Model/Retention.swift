/// The limits of stored data: how long, or how much of it, a store keeps.
package enum Retention {
    /// Google repeats a security event for days, so identifiers are kept for two months.
    package static let identifiers: Duration = .seconds(60 * 86_400)
    /// Longer than any database is used: a token that a user left is remembered until the user is deleted.
    static let leftTokens: Duration = .seconds(1000 * 365 * 86_400)
    /// The beginning of the identifier of such a token.
    static let leftTokenPrefix = "left-refresh-token:"
    /// As many as live at Google for one account and client: the next one ends the oldest
    /// (https://developers.google.com/identity/protocols/oauth2#expiration).
    static let leftTokensPerGrant = 100
    /// Events that are kept for one grant, in addition to its last connection.
    ///
    /// A server that rotates adds an event for each refresh, which is 24 a day. The statement that adds an event
    /// removes what it pushes out, so no sweep is needed.
    package static let eventsPerGrant = 100
    /// Notices that were accepted or given up are kept for a replay.
    static let notices: Duration = .seconds(7 * 86_400)
}
