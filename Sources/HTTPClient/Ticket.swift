internal import Clocks
private import Synchronization

/// One request on its way through the client, with the caller that awaits its end.
struct Ticket: Sendable {
    let id: UInt64
    let request: HTTPRequest
    let submitted: BootInstant
    let deadline: BootInstant
    let beforeSend: (@Sendable () -> Bool)?
    let cancellation: Cancellation
    let caller: CheckedContinuation<Result<HTTPResponse, HTTPFailure>, Never>
}

/// Whether the caller's task was cancelled: tells of a cancellation that came before the request did.
final class Cancellation: Sendable {
    private let requested = Atomic(false)

    var isRequested: Bool { requested.load(ordering: .acquiring) }

    func request() {
        requested.store(true, ordering: .releasing)
    }
}
