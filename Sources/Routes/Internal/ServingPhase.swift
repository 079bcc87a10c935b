/// The phase of the process, for load balancers that decide whether to send it requests.
package enum ServingPhase: String, Sendable {
    case starting
    case serving
    /// Requests in progress are completed. New ones should go to another worker.
    case draining
}
