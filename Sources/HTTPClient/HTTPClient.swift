package import Base

/// Sends many HTTP requests at once over few connections.
///
/// Over HTTP/2, nghttp2 carries them on shared connections. Over HTTP/1.1, libcurl carries each on its own. Each client
/// has a thread of its own, which does all the work, and callers only wait for it. It follows no redirects, does not
/// decompress responses, does not keep more of a response than its limits allow, and never sends a POST twice. Clients
/// do not share anything.
package final class HTTPClient: Sendable {
    /// Called once with the result of a request, usually on the client's thread.
    ///
    /// It blocks every other request, so it must return at once.
    package typealias Completion = @Sendable (Result<HTTPResponse, HTTPError>) -> Void

    private let commands: TransferCommands
    private let thread: DedicatedThread
    private let configuration: Configuration
    private let time: any TimeSource

    /// Starts the client's thread.
    ///
    /// Fails only if memory or threads run out.
    package init(
        configuration: Configuration = Configuration(),
        time: any TimeSource = SystemTime()
    ) throws(HTTPError) {
        let multi = try MultiHandle(configuration)
        let commands = TransferCommands(waking: multi)
        do throws(SystemCallError) {
            thread = try DedicatedThread(name: "http-client") {
                TransferLoop(commands: commands, multi: multi, configuration: configuration, time: time).run()
            }
        } catch {
            throw HTTPError(kind: .other, message: "cannot start the thread of the HTTP client: \(error)")
        }
        self.commands = commands
        self.configuration = configuration
        self.time = time
    }

    /// Closes the client without waiting: a server can keep its thread busy.
    deinit {
        commands.close()
    }

    /// The current counters.
    package var counters: Counters { commands.counters }

    /// Sends a request and waits for its response, which can have any status.
    ///
    /// Cancelling the task ends the request at once.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - deadline: the time limit for this request, instead of the configuration's total.
    ///   - beforeSend: a last check, as described at ``HTTPTransfer/init(_:beforeSend:completion:)``.
    /// - Returns: the complete response.
    /// - Throws: an ``HTTPError`` that says whether the request might have reached the server.
    package func send(
        _ request: HTTPRequest,
        deadline: Duration? = nil,
        beforeSend: (@Sendable () -> Bool)? = nil
    ) async throws(HTTPError) -> HTTPResponse {
        let transfer = HTTPTransfer(request, beforeSend: beforeSend) { _ in }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { caller in
                transfer.completion = { caller.resume(returning: $0) }
                submit([transfer], deadline: deadline)
            }
        } onCancel: {
            cancel(transfer)
        }
        return try result.get()
    }

    /// Sends requests as ``send(_:deadline:beforeSend:)`` does, for callers with so many requests that a waiting task
    /// for each would cost too much.
    package func submit(_ transfers: [HTTPTransfer], deadline: Duration? = nil) {
        let now = time.sinceBoot
        let latest = now + (deadline ?? configuration.totalDeadline)
        var accepted: [HTTPTransfer] = []
        accepted.reserveCapacity(transfers.count)
        for transfer in transfers {
            guard transfer.request.pattern.isSendable else {
                let message = "a header has a character that cannot be sent"
                transfer.complete(.failure(HTTPError(kind: .invalidHeader, message: message)))
                continue
            }
            transfer.prepare(at: now, deadline: latest, configuration)
            accepted.append(transfer)
        }
        guard !commands.submit(accepted) else { return }
        let failure = HTTPError(kind: .shutDown, message: "the HTTP client was shut down")
        for transfer in accepted { transfer.complete(.failure(failure)) }
    }

    /// Ends a request at once, unless it has already ended.
    package func cancel(_ transfer: HTTPTransfer) {
        commands.cancel(transfer)
    }

    /// Ends every request as ``HTTPError/Kind/shutDown``, closes the connections and waits for the thread to end.
    ///
    /// The wait takes milliseconds. Further calls do nothing.
    package func shutDown() {
        commands.close()
        thread.join()
    }
}

extension HTTPClient {
    /// The timeouts, limits and certificate authorities of a client.
    package struct Configuration: Sendable {
        /// The time limit for DNS, TCP and TLS together.
        var connectDeadline: Duration = .seconds(5)
        /// The time limit for a request, counted from `send`.
        ///
        /// Its wait in the queue is included.
        var totalDeadline: Duration = .seconds(15)
        /// A PEM file of the certificates to trust instead of the system's.
        package var caFile: String?
        var maximumBodyBytes = 65536
        var maximumHeaderBytes = 65536
        /// The number of requests in flight.
        ///
        /// Further ones wait in first-in, first-out order.
        var maximumInFlight: Int
        /// The maximum number of connections to one host and port over HTTP/2.
        ///
        /// Over HTTP/1.1 each request has its own.
        var maximumConnections: Int
        package var userAgent = "refresh-worker"

        /// Sets four connections, or more if 50 requests for each are not enough.
        ///
        /// Most servers allow 100 streams or more per connection.
        package init(maximumInFlight: Int = 64) {
            self.maximumInFlight = maximumInFlight
            maximumConnections = min(maximumInFlight, max(4, (maximumInFlight + 49) / 50))
        }
    }
}

extension HTTPClient {
    /// The counts of a client's work since it was made.
    package struct Counters: Hashable, Sendable {
        /// Submitted requests: the sum of `completed`, `failed`, `waiting` and `inFlight`.
        var requests = 0
        /// Requests that got a response, with any status.
        var completed = 0
        var failed = 0
        var waiting = 0
        var inFlight = 0
        package var newConnections = 0
        /// Responses that did not need a new connection.
        package var reusedConnections = 0
        /// Rounds of the client's thread.
        ///
        /// It grows at least once a second while the thread works.
        package var rounds = 0
    }
}
