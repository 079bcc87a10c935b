private import Base
private import Dispatch
private import Synchronization

/// Reads the timelines of all hosts of an address, at most once in an interval.
final class HostSurvey: Sendable {
    /// The interval at which a worker with good connections checks if another host was promoted.
    private static let interval: Duration = .seconds(30)
    /// The time for a host to respond; a slower one is left out.
    private static let timeout: Duration = .seconds(2)

    private let last = Mutex<BootInstant?>(nil)

    /// Returns after all hosts have responded, or their time is over.
    func survey(_ connector: Connector) async {
        guard connector.hasSeveralHosts else { return }
        last.withLock { $0 = SystemTime().sinceBoot }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                connector.survey(within: Self.timeout)
                continuation.resume()
            }
        }
    }

    /// Starts a survey in the background if the last one is long ago.
    func surveyIfDue(_ connector: Connector) {
        let now = SystemTime().sinceBoot
        let isDue = last.withLock { last in last.map { now - $0 >= Self.interval } ?? true }
        if isDue { Task { await survey(connector) } }
    }
}
