import HTTPClient

extension HTTPClient {
    /// Submits a request that is asked about before it leaves, and waits for its end.
    func send(
        _ request: HTTPRequest,
        beforeSend: @escaping @Sendable () -> Bool
    ) async throws(HTTPFailure) -> HTTPResponse {
        let result = await withCheckedContinuation { caller in
            submit([Submission(request, beforeSend: beforeSend) { caller.resume(returning: $0) }])
        }
        return try result.get()
    }
}
