package import Storage
package import Telemetry

extension MetricsLine {
    /// Adds the connection, unless it is the default one.
    package mutating func connection(_ connection: ConnectionID) {
        text(
            "connection",
            ifAny: connection.isDefault ? nil : connection.description,
            "the connection of the user; without it, `default`"
        )
    }
}
