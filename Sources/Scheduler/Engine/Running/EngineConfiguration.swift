package import Crypto

/// The settings of an engine.
package struct EngineConfiguration: Sendable {
    /// The default of ``maximumInFlight``: so many requests need little memory, and make hundreds of refreshes per
    /// second even if each takes a second.
    package static let defaultMaximumInFlight = 512

    /// The name of this worker in its leases and log lines.
    package var workerName: String
    /// The highest number of requests per second of one client id, by all workers together.
    package var maxRate: Double
    /// The secrets of confidential clients, by client id; Google's public clients do not have one.
    package var clientSecrets: [String: Secret]
    /// The maximum number of refreshes in flight; ``InFlightLimit`` decides how many are worth having.
    package var maximumInFlight: Int
    /// The longest time that one request may take; a lease must outlast it.
    package var requestDeadline: Duration
    /// The interval between reads of the due index, and how far ahead each one reads.
    package var scanInterval: Duration
    package var scanAhead: Duration

    package init(
        workerName: String,
        maxRate: Double = 200,
        clientSecrets: [String: Secret] = [:],
        maximumInFlight: Int = defaultMaximumInFlight,
        requestDeadline: Duration = .seconds(15),
        scanInterval: Duration = .seconds(2),
        scanAhead: Duration = .seconds(5)
    ) {
        self.workerName = workerName
        self.maxRate = maxRate
        self.clientSecrets = clientSecrets
        self.maximumInFlight = maximumInFlight
        self.requestDeadline = requestDeadline
        self.scanInterval = scanInterval
        self.scanAhead = scanAhead
    }

    /// The time that a lease must have left when a request is sent: the request's deadline, and time to store its
    /// answer.
    package var leaseNeededToSend: Duration { requestDeadline + .seconds(5) }
}
