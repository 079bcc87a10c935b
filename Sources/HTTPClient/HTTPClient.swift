package import Base
import Crypto
private import Synchronization

/// Sends many HTTP requests at once over few connections, with libcurl's multi interface.
///
/// Each client has its own thread, which does all the work; callers only wait for it. It follows no redirects, does not
/// decompress responses, does not keep more of a response than its limits allow, and never sends a POST twice. Clients
/// do not share anything.
package final class HTTPClient: Sendable {
    /// Called once with the result of a request, usually on the client's thread.
    ///
    /// It blocks every other request, so it must return at once.
    package typealias Completion = @Sendable (Result<HTTPResponse, HTTPFailure>) -> Void

    private let commands: TransferCommands
    private let thread: DedicatedThread
    private let publishedCounters: PublishedCounters
    private let configuration: Configuration
    private let time: any TimeSource

    /// Starts the client's thread.
    ///
    /// Fails only if memory or threads run out.
    package init(
        configuration: Configuration = Configuration(),
        time: any TimeSource = SystemTime()
    ) throws(HTTPFailure) {
        let multi = try MultiHandle(configuration)
        let commands = TransferCommands(waking: multi)
        let published = PublishedCounters()
        do throws(SystemCallError) {
            thread = try DedicatedThread(name: "http-client") {
                TransferLoop(commands: commands, multi: multi, configuration: configuration, time: time) { counters in
                    published.counters.withLock { $0 = counters }
                }.run()
            }
        } catch {
            throw HTTPFailure(kind: .other, message: "cannot start the thread of the HTTP client: \(error)")
        }
        self.commands = commands
        publishedCounters = published
        self.configuration = configuration
        self.time = time
    }

    deinit {
        shutDown()
    }

    /// The current counters.
    package var counters: Counters { publishedCounters.counters.withLock { $0 } }

    /// Sends a request and waits for its response, which may have any status.
    ///
    /// Cancelling the task ends the request at once.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - deadline: the time limit for this request, instead of the configuration's total.
    ///   - beforeSend: a last check, as described at ``Submission/init(_:beforeSend:completion:)``.
    /// - Returns: the complete response.
    /// - Throws: an ``HTTPFailure`` that says whether the request may have reached the server.
    package func send(
        _ request: HTTPRequest,
        deadline: Duration? = nil,
        beforeSend: (@Sendable () -> Bool)? = nil
    ) async throws(HTTPFailure) -> HTTPResponse {
        let pending = PendingRequest(id: commands.makeID(), commands: commands)
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

    /// Sends requests as ``send(_:deadline:beforeSend:)`` does, for callers with so many requests that a waiting task
    /// for each would cost too much.
    ///
    /// - Returns: a handle for each request, by which it can be cancelled.
    @discardableResult
    package func submit(_ submissions: [Submission]) -> [PendingRequest] {
        let pending = submissions.map { _ in PendingRequest(id: commands.makeID(), commands: commands) }
        submit(Array(zip(submissions, pending)), deadline: nil)
        return pending
    }

    private func submit(_ submissions: [(Submission, PendingRequest)], deadline: Duration?) {
        let submittedAt = time.sinceBoot
        var accepted: [SubmittedRequest] = []
        accepted.reserveCapacity(submissions.count)
        for (submission, pending) in submissions {
            guard submission.request.isSendable else {
                let message = "a header has a character that cannot be sent"
                submission.completion(.failure(HTTPFailure(kind: .invalidHeader, message: message)))
                continue
            }
            accepted.append(
                SubmittedRequest(
                    id: pending.id,
                    content: submission.request,
                    submittedAt: submittedAt,
                    deadline: submittedAt + (deadline ?? configuration.totalDeadline),
                    beforeSend: submission.beforeSend,
                    cancellation: pending.cancellation,
                    completion: submission.completion
                )
            )
        }
        guard !commands.submit(accepted) else { return }
        let failure = HTTPFailure(kind: .shutDown, message: "the HTTP client was shut down")
        for request in accepted { request.completion(.failure(failure)) }
    }

    /// A request to send, and the closure that gets its result.
    package struct Submission: Sendable {
        let request: HTTPRequest
        let beforeSend: (@Sendable () -> Bool)?
        let completion: Completion

        /// - Parameters:
        ///   - request: the request to send.
        ///   - beforeSend: called on the client's thread immediately before libcurl gets the request. If it returns
        ///     `false`, the request fails as ``HTTPFailure/Kind/withheld``. It blocks every other request, so it
        ///     must return at once.
        ///   - completion: called with the result, possibly before ``HTTPClient/submit(_:)`` returns.
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
        fileprivate let commands: TransferCommands
        fileprivate let cancellation = Cancellation()

        /// Ends the request at once, unless it has already ended.
        package func cancel() {
            cancellation.request()
            commands.cancel(id)
        }
    }

    /// Ends every request as ``HTTPFailure/Kind/shutDown``, closes the connections and waits for the thread to end.
    ///
    /// The wait takes milliseconds. Further calls do nothing.
    package func shutDown() {
        commands.close()
        thread.join()
    }

    /// The counters that the client's thread publishes for other threads.
    private final class PublishedCounters: Sendable {
        let counters = Mutex(Counters())
    }
}
