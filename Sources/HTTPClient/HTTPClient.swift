package import Base
import Crypto
private import Glibc
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

extension HTTPClient {
    /// The timeouts, limits and certificate authorities of a client.
    package struct Configuration: Sendable {
        /// The time limit for DNS, TCP and TLS together.
        package var connectDeadline: Duration = .seconds(5)
        /// The time limit for a request, counted from `send`; its wait in the queue is included.
        package var totalDeadline: Duration = .seconds(15)
        /// A PEM file of the certificates to trust instead of the system's.
        package var caFile: String?
        package var maximumBodyBytes = 65536
        package var maximumHeaderBytes = 65536
        /// The number of requests that libcurl handles at once; further requests wait in first-in, first-out order.
        package var maximumInFlight: Int
        /// The maximum number of connections to one host and port.
        ///
        /// A number below `maximumInFlight` works well only if the server speaks HTTP/2: over HTTP/1.1 libcurl would
        /// hold back the excess requests itself and count their wait as connect time.
        package var maximumConnections: Int
        package var userAgent = "refresh-worker"
        /// `true` if HTTP/2 is offered; it is only used over TLS.
        package var http2 = true
        /// The library that frames HTTP/2.
        package var http2Framing = HTTP2Framing.nghttp2

        /// libcurl can carry HTTP/2 too; tests hold both ways to the same rules.
        package enum HTTP2Framing: Sendable, CaseIterable {
            case nghttp2
            case libcurl
        }

        /// Sets as many connections as requests in flight, which HTTP/1.1 needs.
        package init(maximumInFlight: Int = 64) {
            self.maximumInFlight = maximumInFlight
            maximumConnections = maximumInFlight
        }

        /// The maximum number of connections to one host and port until a response comes over HTTP/1.1.
        ///
        /// libcurl opens a connection for every request that finds no free stream, although one more connection would
        /// serve a hundred requests (https://curl.se/libcurl/c/CURLOPT_PIPEWAIT.html waits only for the first
        /// connection). Most servers allow 100 streams or more per connection; 50 are enough here.
        var connectionsOverHTTP2: Int {
            http2 ? min(maximumConnections, max(4, (maximumInFlight + 49) / 50)) : maximumConnections
        }

        /// The maximum number of connections to one host and port in libcurl until a response comes over HTTP/1.1.
        ///
        /// At the limit, libcurl 7.88 closes a connection that it has just made for ``HTTP2Transport``, to make room
        /// for another. So there is room for the connections that only finish their requests: each has one in flight.
        var connectionsInLibcurl: Int {
            http2 && http2Framing == .nghttp2 ? connectionsOverHTTP2 + maximumInFlight : connectionsOverHTTP2
        }
    }
}

extension HTTPClient {
    /// The counts of a client's work since it was made.
    package struct Counters: Hashable, Sendable {
        /// Submitted requests: the sum of `completed`, `failed`, `waiting` and `inFlight`.
        package var requests = 0
        /// Requests that got a response, with any status.
        package var completed = 0
        package var failed = 0
        package var waiting = 0
        package var inFlight = 0
        package var newConnections = 0
        /// Responses that did not need a new connection.
        package var reusedConnections = 0
        package var http1Responses = 0
        package var http2Responses = 0
        /// Bytes of bodies; headers are not counted, here and in `bytesReceived`.
        package var bytesSent = 0
        package var bytesReceived = 0
        /// Rounds of the client's thread.
        ///
        /// It grows at least once a second while the thread works.
        package var rounds = 0
    }
}

/// The proxies that libcurl takes from the environment (https://curl.se/libcurl/c/CURLOPT_PROXY.html).
enum ProxyEnvironment {
    /// `true` if https URLs may go through a proxy that itself speaks TLS.
    ///
    /// libcurl prepares the TLS of such a proxy like that of the server: the proxy would be offered HTTP/2.
    static func namesTLSProxy(_ variable: (String) -> String? = variable) -> Bool {
        ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].contains { name in
            variable(name)?.lowercased().hasPrefix("https://") ?? false
        }
    }

    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
