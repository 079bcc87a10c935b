import Base
package import Crypto

/// The settings of an engine.
package struct EngineConfiguration: Sendable {
    /// The default of ``maximumInFlight``: so many requests need little memory, and make hundreds of refreshes per
    /// second even if each takes a second.
    package static let defaultMaximumInFlight = 512

    /// The name of this worker in its leases and log lines.
    var workerName: String
    /// The highest number of requests per second of one client id, by all workers together.
    var maxRate = 200.0
    /// The secrets of confidential clients, by client id.
    ///
    /// Google's public clients do not have one.
    var clientSecrets: [String: Secret] = [:]
    /// The maximum number of refreshes in flight, of which ``InFlightLimit`` uses as many as are worth having.
    var maximumInFlight = defaultMaximumInFlight
    /// The longest time that one request can take, which a lease must outlast.
    var requestDeadline: Duration = .seconds(15)
    /// The interval between reads of the due index, and how far ahead each one reads.
    var scanInterval: Duration = .seconds(2)
    var scanAhead: Duration = .seconds(5)

    /// The time that a lease must have left when a request is sent: the request's deadline, and time to store its
    /// answer.
    var leaseNeededToSend: Duration { requestDeadline + .seconds(5) }
}

extension EngineConfiguration {
    package init(workerName: String, maxRate: Double, clientSecrets: [String: Secret]) {
        self.init(workerName: workerName)
        self.maxRate = maxRate
        self.clientSecrets = clientSecrets
    }
}
