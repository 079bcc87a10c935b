internal import Clocks

/// One request on its way through the client, with the closure that gets its result.
///
/// A class, because copies of its many fields would cost more than the rest of the work.
final class SubmittedRequest: Sendable {
    let id: UInt64
    let content: HTTPRequest
    let submittedAt: BootInstant
    let deadline: BootInstant
    let beforeSend: (@Sendable () -> Bool)?
    let cancellation: Cancellation
    let completion: HTTPClient.Completion

    init(
        id: UInt64,
        content: HTTPRequest,
        submittedAt: BootInstant,
        deadline: BootInstant,
        beforeSend: (@Sendable () -> Bool)?,
        cancellation: Cancellation,
        completion: @escaping HTTPClient.Completion
    ) {
        self.id = id
        self.content = content
        self.submittedAt = submittedAt
        self.deadline = deadline
        self.beforeSend = beforeSend
        self.cancellation = cancellation
        self.completion = completion
    }
}
