internal import Clocks
private import Synchronization

/// One request on its way through the client, with the closure that gets its result.
///
/// A class, because copies of its many fields would cost more than the rest of the work.
final class SubmittedRequest: Sendable {
    let id: UInt64
    let request: HTTPRequest
    let submitted: BootInstant
    let deadline: BootInstant
    let beforeSend: (@Sendable () -> Bool)?
    let cancellation: Cancellation
    let completion: HTTPClient.Completion

    init(
        id: UInt64,
        request: HTTPRequest,
        submitted: BootInstant,
        deadline: BootInstant,
        beforeSend: (@Sendable () -> Bool)?,
        cancellation: Cancellation,
        completion: @escaping HTTPClient.Completion
    ) {
        self.id = id
        self.request = request
        self.submitted = submitted
        self.deadline = deadline
        self.beforeSend = beforeSend
        self.cancellation = cancellation
        self.completion = completion
    }
}

/// `true` once the caller has cancelled.
///
/// The owner thread sees it even if the cancel order arrives before the request.
final class Cancellation: Sendable {
    private let requested = Atomic(false)

    var isRequested: Bool { requested.load(ordering: .acquiring) }

    func request() {
        requested.store(true, ordering: .releasing)
    }
}
