import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request to one answer, with the failures in this library's words.
struct Transport: Sendable {
    let session: URLSession

    /// Sends a request as it is; a redirect is an answer like any other.
    func send(_ request: URLRequest) async throws(AccountError) -> (Data, HTTPURLResponse) {
        do {
            let (data, response) = try await session.data(for: request, delegate: RedirectRefusal())
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            return (data, response)
        } catch is CancellationError {
            throw .cancelled
        } catch let error as URLError {
            throw Task.isCancelled && error.code == .cancelled ? .cancelled : .unreachable(error.code)
        } catch {
            throw .unreachable(.unknown)
        }
    }
}

/// Follows no redirect: it would carry the bearer to an address that the server names.
private final class RedirectRefusal: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
