internal import Clocks
private import Synchronization

/// One request on its way through the client, with whom its end is told.
///
/// A class, since it goes from hand to hand and copies of its many parts would cost more than the rest.
final class Ticket: Sendable {
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

/// Whether the caller cancelled: tells of a cancellation that came before the request did.
final class Cancellation: Sendable {
    private let requested = Atomic(false)

    var isRequested: Bool { requested.load(ordering: .acquiring) }

    func request() {
        requested.store(true, ordering: .releasing)
    }
}
