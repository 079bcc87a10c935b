package import Clocks
private import Synchronization

/// Sends HTTP requests, many at once over few connections, by libcurl's multi interface.
///
/// One thread of its own does all the work; callers only wait for it. No redirect is followed, no answer is
/// decompressed or kept beyond its caps, and a POST is never sent twice. Clients share nothing.
package final class HTTPClient: Sendable {
    /// Told once how a request ended, mostly on the client's thread: it holds up every other request, so it must be quick.
    package typealias Completion = @Sendable (Result<HTTPResponse, HTTPFailure>) -> Void

    private let inbox: Inbox
    private let thread: OwnerThread
    private let board: Board
    private let configuration: Configuration
    private let time: any TimeSource

    /// Starts the client's thread; fails only for want of memory or threads.
    package init(
        configuration: Configuration = Configuration(),
        time: any TimeSource = SystemTime()
    ) throws(HTTPFailure) {
        let multi = try MultiHandle(configuration)
        let inbox = Inbox(waking: multi)
        let board = Board()
        do throws(OwnerThread.SystemFailure) {
            thread = try OwnerThread(name: "http-client") {
                TransferLoop(inbox: inbox, multi: multi, configuration: configuration, time: time) { counters in
                    board.counters.withLock { $0 = counters }
                }.run()
            }
        } catch {
            throw HTTPFailure(kind: .other, message: "no thread for the HTTP client (errno \(error.number))")
        }
        self.inbox = inbox
        self.board = board
        self.configuration = configuration
        self.time = time
    }

    deinit {
        shutDown()
    }

    /// What the client has done so far.
    package var counters: Counters { board.counters.withLock { $0 } }

    /// Sends a request and waits for its answer, which may have any status.
    ///
    /// Cancelling the task ends the request at once.
    ///
    /// - Parameters:
    ///   - request: what to send.
    ///   - deadline: how long the request may take from now on, instead of the configuration's total.
    ///   - beforeSend: asked as ``Submission/init(_:beforeSend:completion:)`` says.
    /// - Returns: the complete answer.
    /// - Throws: an ``HTTPFailure`` that says whether the request may have reached the server all the same.
    package func send(
        _ request: HTTPRequest,
        deadline: Duration? = nil,
        beforeSend: (@Sendable () -> Bool)? = nil
    ) async throws(HTTPFailure) -> HTTPResponse {
        let pending = PendingRequest(id: inbox.makeID(), inbox: inbox)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { caller in
                let submission = Submission(request, beforeSend: beforeSend) { caller.resume(returning: $0) }
                submit([(submission, pending)], deadline: deadline)
            }
        } onCancel: {
            pending.cancel()
        }
        return try result.get()
    }

    /// Sends requests as ``send(_:deadline:beforeSend:)`` does, for callers of so many that a waiting task for each would cost too much.
    ///
    /// - Returns: what each can be cancelled by.
    @discardableResult
    package func submit(_ submissions: [Submission]) -> [PendingRequest] {
        let pending = submissions.map { _ in PendingRequest(id: inbox.makeID(), inbox: inbox) }
        submit(Array(zip(submissions, pending)), deadline: nil)
        return pending
    }

    private func submit(_ submissions: [(Submission, PendingRequest)], deadline: Duration?) {
        let submitted = time.sinceBoot
        var tickets: [Ticket] = []
        tickets.reserveCapacity(submissions.count)
        for (submission, pending) in submissions {
            guard submission.request.isSendable else {
                let message = "a header has a character that cannot be sent"
                submission.completion(.failure(HTTPFailure(kind: .invalidHeader, message: message)))
                continue
            }
            tickets.append(
                Ticket(
                    id: pending.id,
                    request: submission.request,
                    submitted: submitted,
                    deadline: submitted + (deadline ?? configuration.totalDeadline),
                    beforeSend: submission.beforeSend,
                    cancellation: pending.cancellation,
                    completion: submission.completion
                )
            )
        }
        guard !inbox.submit(tickets) else { return }
        let failure = HTTPFailure(kind: .shutDown, message: "the HTTP client was shut down")
        for ticket in tickets { ticket.completion(.failure(failure)) }
    }

    /// A request to send, and whom to tell of its end.
    package struct Submission: Sendable {
        let request: HTTPRequest
        let beforeSend: (@Sendable () -> Bool)?
        let completion: Completion

        /// - Parameters:
        ///   - request: what to send.
        ///   - beforeSend: asked on the client's thread immediately before libcurl has the request; where it says no, the
        ///     request fails as ``HTTPFailure/Kind/withheld``. It holds up every other request, so it must be quick.
        ///   - completion: told the end, whatever it is; it may be before ``HTTPClient/submit(_:)`` returns.
        package init(
            _ request: HTTPRequest,
            beforeSend: (@Sendable () -> Bool)? = nil,
            completion: @escaping Completion
        ) {
            self.request = request
            self.beforeSend = beforeSend
            self.completion = completion
        }
    }

    /// A request that was submitted.
    package struct PendingRequest: Sendable {
        fileprivate let id: UInt64
        fileprivate let inbox: Inbox
        fileprivate let cancellation = Cancellation()

        /// Ends the request at once, unless it has ended.
        package func cancel() {
            cancellation.request()
            inbox.cancel(id)
        }
    }

    /// Ends every request as ``HTTPFailure/Kind/shutDown``, closes the connections and waits for the thread to end.
    ///
    /// Doing it again does nothing. The wait is a matter of milliseconds.
    package func shutDown() {
        inbox.close()
        thread.join()
    }

    /// Where the owner thread leaves its counters for others to read.
    private final class Board: Sendable {
        let counters = Mutex(Counters())
    }
}
