internal import Clocks
private import Synchronization

/// One request on its way through the client, with the caller that awaits its end.
///
/// A class, since it goes from hand to hand and copies of its many parts would cost more than the rest.
final class Ticket: Sendable {
    let id: UInt64
    let request: HTTPRequest
    let submitted: BootInstant
    let deadline: BootInstant
    let beforeSend: (@Sendable () -> Bool)?
    let cancellation: Cancellation
    let caller: CheckedContinuation<Result<HTTPResponse, HTTPFailure>, Never>

    init(
        id: UInt64,
        request: HTTPRequest,
        submitted: BootInstant,
        deadline: BootInstant,
        beforeSend: (@Sendable () -> Bool)?,
        cancellation: Cancellation,
        caller: CheckedContinuation<Result<HTTPResponse, HTTPFailure>, Never>
    ) {
        self.id = id
        self.request = request
        self.submitted = submitted
        self.deadline = deadline
        self.beforeSend = beforeSend
        self.cancellation = cancellation
        self.caller = caller
    }
}

/// Whether the caller's task was cancelled: tells of a cancellation that came before the request did.
final class Cancellation: Sendable {
    private let requested = Atomic(false)

    var isRequested: Bool { requested.load(ordering: .acquiring) }

    func request() {
        requested.store(true, ordering: .releasing)
    }
}
