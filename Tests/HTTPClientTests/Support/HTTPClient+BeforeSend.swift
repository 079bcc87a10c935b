import HTTPClient

extension HTTPClient {
    /// Submits a request with a `beforeSend`, and waits for its result.
    func send(
        _ request: HTTPRequest,
        beforeSend: @escaping @Sendable () -> Bool
    ) async throws(HTTPFailure) -> HTTPResponse {
        let result = await withCheckedContinuation { caller in
            submit([HTTPTransfer(request, beforeSend: beforeSend) { caller.resume(returning: $0) }])
        }
        return try result.get()
    }
}
