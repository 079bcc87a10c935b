import TestSupport

@testable import Routes
@testable import Scheduler
@testable import Storage

/// A user's connections, their ids and their labels.
extension DocumentedNumber {
    static var connections: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/connections.md",
            "A user can have \(AppRoutes.Dependencies.defaultConnectionsPerUser.asWord) connections",
            "a new one if the user has \(ConnectionTarget.maximumRows.asWord)",
            """
            at most \(ConnectionLabels.maximumCount.asWord), each with a name and a value of 1 to \
            \(ConnectionLabels.maximumLength) bytes
            """,
            "one of 1 to \(ConnectionID.maximumLength) letters, digits"
        )
        return numbers
    }
}
