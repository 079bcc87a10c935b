import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension URLSession {
    /// Does not follow a redirect, which would take the credential or the token to another address.
    static let withoutRedirects = URLSession(
        configuration: .ephemeral,
        delegate: RedirectRefusal(),
        delegateQueue: nil
    )
}

/// Ends each request at its first response.
final class RedirectRefusal: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
