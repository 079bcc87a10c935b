internal import Base
private import Synchronization

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

/// A request with its result.
struct EndedRequest {
    let request: SubmittedRequest
    let result: Result<HTTPResponse, HTTPFailure>
    let cost: TransferCost
}

/// A flag that the caller of a request sets to cancel it.
///
/// The client's thread sees it even if the cancel command arrives before the request.
final class Cancellation: Sendable {
    private let requested = Atomic(false)

    var isRequested: Bool { requested.load(ordering: .acquiring) }

    func request() {
        requested.store(true, ordering: .releasing)
    }
}

/// The connections opened, the body bytes sent and the body bytes received for one request.
struct TransferCost {
    var connections = 0
    var sent = 0
    var received = 0
}

/// The queue of commands from callers to the client's thread.
final class TransferCommands: Sendable {
    enum Command: Sendable {
        case submit(SubmittedRequest)
        case cancel(UInt64)
    }

    fileprivate struct State {
        var commands: [Command] = []
        var isClosed = false
        var multi: MultiHandle?
    }

    private let state: Mutex<State>
    private let lastID = Atomic<UInt64>(0)

    init(waking multi: MultiHandle) {
        state = Mutex(State(multi: multi))
    }

    func makeID() -> UInt64 {
        lastID.add(1, ordering: .relaxed).newValue
    }

    /// Queues requests; returns `false` if the client is shut down.
    func submit(_ requests: [SubmittedRequest]) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            for request in requests { state.append(.submit(request)) }
            return true
        }
    }

    func cancel(_ id: UInt64) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.append(.cancel(id))
        }
    }

    /// Asks the client's thread to end.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.multi?.wakeUp()
        }
    }

    /// Removes and returns all commands; called by the client's thread.
    func take() -> (commands: [Command], isClosed: Bool) {
        state.withLock { state in
            defer { state.commands.removeAll(keepingCapacity: state.commands.count <= 1024) }
            return (state.commands, state.isClosed)
        }
    }

    /// Releases libcurl's handle when the client's thread ends.
    func releaseHandle() {
        state.withLock { $0.multi = nil }
    }
}

extension TransferCommands.State {
    /// Wakes the client's thread for the first command only: it takes all of them after each wake.
    fileprivate mutating func append(_ command: TransferCommands.Command) {
        if commands.isEmpty { multi?.wakeUp() }
        commands.append(command)
    }
}
