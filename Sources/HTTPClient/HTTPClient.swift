package import Clocks
private import Synchronization

/// Sends HTTP requests, many at once over few connections, by libcurl's multi interface.
///
/// One thread of its own does all the work; callers only wait for it. No redirect is followed, no answer is
/// decompressed or kept beyond its caps, and a POST is never sent twice. Clients share nothing.
package final class HTTPClient: Sendable {
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
    ///   - beforeSend: asked on the client's thread immediately before libcurl has the request; where it says no, the
    ///     request fails as ``HTTPFailure/Kind/withheld``. It holds up every other request, so it must be quick.
    /// - Returns: the complete answer.
    /// - Throws: an ``HTTPFailure`` that says whether the request may have reached the server all the same.
    package func send(
        _ request: HTTPRequest,
        deadline: Duration? = nil,
        beforeSend: (@Sendable () -> Bool)? = nil
    ) async throws(HTTPFailure) -> HTTPResponse {
        guard request.isSendable else {
            throw HTTPFailure(kind: .invalidHeader, message: "a header has a character that cannot be sent")
        }

        let id = inbox.makeID()
        let cancellation = Cancellation()
        let submitted = time.sinceBoot
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { caller in
                let ticket = Ticket(
                    id: id,
                    request: request,
                    submitted: submitted,
                    deadline: submitted + (deadline ?? configuration.totalDeadline),
                    beforeSend: beforeSend,
                    cancellation: cancellation,
                    caller: caller
                )
                guard !inbox.submit(ticket) else { return }
                let failure = HTTPFailure(kind: .shutDown, message: "the HTTP client was shut down")
                caller.resume(returning: .failure(failure))
            }
        } onCancel: {
            cancellation.request()
            inbox.cancel(id)
        }
        return try result.get()
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
