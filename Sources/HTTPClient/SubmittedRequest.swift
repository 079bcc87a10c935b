internal import Base

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

extension SubmittedRequest {
    /// Makes the last checks that may prevent the request, immediately before it is sent.
    func checkBeforeSending(_ time: any TimeSource) throws(HTTPFailure) {
        guard !cancellation.isRequested else {
            throw HTTPFailure(kind: .cancelled, message: "the request was cancelled")
        }
        guard beforeSend?() ?? true else {
            throw HTTPFailure(kind: .withheld, message: "beforeSend prevented the request")
        }
        guard time.sinceBoot < deadline else {
            throw HTTPFailure(kind: .expired, message: "the deadline passed before the request was sent")
        }
    }

    /// Calls the closure with the body; a request without one has an empty body.
    func withBody<Result>(_ body: (RawSpan) -> Result) -> Result {
        content.body?.withBytes(body) ?? body(RawSpan())
    }

    /// Returns the kind and text of the failure of a request whose deadline has passed.
    ///
    /// An unsent request counts as the server's timeout only if connecting took longer than the wait in this process.
    func expiry(isIssued: Bool, startedAt: BootInstant, now: BootInstant) -> (HTTPFailure.Kind, String) {
        guard !isIssued else { return (.timeout, "no response within the deadline") }
        guard now - startedAt < startedAt - submittedAt else { return (.timeout, "no connection within the deadline") }
        return (.expired, "the deadline passed before the request was sent")
    }
}
