private import Synchronization

/// The phase of the process, for load balancers that decide whether to send it requests.
package final class ServingPhase: Sendable {
    package enum Phase: String, Sendable {
        case starting
        case serving
        /// Requests in progress are completed; new ones should go to another worker.
        case draining
    }

    private let state = Mutex(Phase.starting)

    package init() {}

    package var current: Phase { state.withLock { $0 } }

    package func enter(_ phase: Phase) { state.withLock { $0 = phase } }
}
