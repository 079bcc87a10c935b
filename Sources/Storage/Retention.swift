/// The limits of stored data: how long, or how much of it, a store keeps.
package enum Retention {
    /// Google repeats a security event for days; its identifier is kept for two months.
    package static let securityEvents: Duration = .seconds(60 * 86_400)
    /// The number of events that are kept for one grant, in addition to its last connection.
    ///
    /// A server that rotates adds an event for each refresh, which is 24 a day.
    package static let eventsPerGrant = 100
    /// Notices that were accepted or given up are kept for a replay.
    package static let notices: Duration = .seconds(7 * 86_400)
}
