private import Synchronization

/// Where the process is in its life, for those who decide whether to send it requests.
package final class ServingPhase: Sendable {
    package enum Phase: String, Sendable {
        case starting
        case serving
        /// Begun requests are finished; new ones should go elsewhere.
        case draining
    }

    private let state = Mutex(Phase.starting)

    package init() {}

    package var current: Phase { state.withLock { $0 } }

    package func enter(_ phase: Phase) { state.withLock { $0 = phase } }
}
