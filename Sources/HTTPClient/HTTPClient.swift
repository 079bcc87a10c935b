package import Base

/// Sends many HTTP requests at once over few connections.
///
///     let client = try HTTPClient()
///     let endpoint = try Endpoint("https://oauth2.googleapis.com/token")
///     let response = try await client.send(HTTPRequest(method: .post, endpoint: endpoint, body: body))
///     client.shutDown()
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
            transfer.prepare(at: now, deadline: latest, configuration: configuration)
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
