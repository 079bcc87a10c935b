import Base
import Storage

/// One effect that ``RefreshEngineState`` asks for.
enum EngineAction: Sendable {
    /// Runs another iteration of the loop.
    case wakeLoop
    /// Sends the requests of claimed grants.
    case send([Refresh])
    /// Stops waiting for the endpoint.
    case cancel(Refresh)
    /// Releases leases in the store, and then reports them as released with this end.
    case release([GrantID: Int64], end: RefreshCompletion)
    /// Wakes the callers that wait for a refresh.
    case complete(CompletionSignal, RefreshCompletion)
    /// Logs refreshes whose decisions are committed.
    case logRefreshes([Refresh])
    case logBreaker(Breaker.Change, client: String)
    /// Logs that a client is stopped because its first grants were refused, or that this has ended.
    case logSuspectedCopy(client: String, isSuspected: Bool)
    case logPace(client: String, ceiling: Double, paused: Duration, reason: String)
    /// Logs that this worker gets no answers while others do, with the code of the last failure.
    case logReachLost(code: String)
    /// Logs that this worker gets answers again.
    case logReachRestored
    /// Makes the grants of a client due that an outage left in back-off.
    case expediteRetries(client: String)
    /// Refreshes a healthy grant of a client early, to see if the client is at fault.
    case refreshHealthyGrant(client: String)
    /// Updates the committer's number of refreshes in flight.
    case expectResults(inFlight: Int)
    /// Continues the tasks that wait until nothing is in flight, such as a stop.
    case reportIdle
}
