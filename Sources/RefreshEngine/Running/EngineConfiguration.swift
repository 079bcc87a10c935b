package import Secrets

/// What an engine is told from outside.
package struct EngineConfiguration: Sendable {
    /// The memory of so many requests does not count, and at a second each they still make hundreds of refreshes a second.
    package static let usualMostInFlight = 512

    /// The name that this worker signs its leases and its log lines with.
    package var workerName: String
    /// Requests a second of one client id.
    package var maxRate: Double
    /// The secrets of confidential clients by their client ids; Google's public clients have none.
    package var clientSecrets: [String: Secret]
    /// Requests on their way at once, at most: ``InFlightLimit`` asks for as many as are of use.
    package var mostInFlight: Int
    /// What one request may take in all; a lease must outlast it.
    package var requestDeadline: Duration
    /// How long a claim lasts unless it is renewed, which happens at a third of it.
    package var leaseSpan: Duration
    /// How often the due index is read, and how far ahead.
    package var scanInterval: Duration
    package var scanAhead: Duration

    package init(
        workerName: String,
        maxRate: Double = 200,
        clientSecrets: [String: Secret] = [:],
        mostInFlight: Int = usualMostInFlight,
        requestDeadline: Duration = .seconds(15),
        leaseSpan: Duration = .seconds(30),
        scanInterval: Duration = .seconds(2),
        scanAhead: Duration = .seconds(5)
    ) {
        self.workerName = workerName
        self.maxRate = maxRate
        self.clientSecrets = clientSecrets
        self.mostInFlight = mostInFlight
        self.requestDeadline = requestDeadline
        self.leaseSpan = leaseSpan
        self.scanInterval = scanInterval
        self.scanAhead = scanAhead
    }

    /// What a lease must have left at the moment a request is sent: the request's deadline, and time to store its answer.
    package var leaseNeededToSend: Duration { requestDeadline + .seconds(5) }
}
