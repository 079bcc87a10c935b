package import Foundation

#if canImport(FoundationNetworking)
    package import FoundationNetworking
#endif

/// Sends one request unchanged and returns its response, with failures as ``AccountError``.
///
/// A redirect is returned like any other response. `canWait` says if the request can be sent later, when the device has
/// a network again. A refresh token must not wait: another process of the app might have spent it by then.
package typealias Transport =
    @Sendable (URLRequest, _ canWait: Bool) async throws(AccountError) -> (Data, HTTPURLResponse)

extension URLSessionConfiguration {
    /// Has neither cookies nor a cache, and lets calls wait for a network instead of failing in a tunnel.
    static var forCalls: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        #if !canImport(FoundationNetworking)
            configuration.waitsForConnectivity = true
        #endif
        return configuration
    }
}

extension URLSession {
    /// Sends a request and returns the response, even if it is a redirect.
    ///
    /// `data(for:delegate:)` is not suitable: on Linux it never asks its delegate about a redirect, and follows it with
    /// the bearer. The delegate of the task itself is asked everywhere.
    ///
    /// https://github.com/swiftlang/swift-corelibs-foundation/blob/main/Sources/FoundationNetworking/URLSession/HTTP/HTTPURLProtocol.swift
    func response(to request: URLRequest, canWait: Bool) async throws(AccountError) -> (Data, HTTPURLResponse) {
        let (responses, continuation) = AsyncThrowingStream.makeStream(of: (Data, HTTPURLResponse).self)
        let task = dataTask(with: request) { data, response, error in
            if let response = response as? HTTPURLResponse, error == nil {
                continuation.yield((data ?? Data(), response))
                continuation.finish()
            } else {
                continuation.finish(throwing: error ?? URLError(.badServerResponse))
            }
        }
        task.delegate = TaskDelegate { task in
            guard !canWait else { return }
            continuation.finish(throwing: URLError(.notConnectedToInternet))
            task.cancel()
        }
        task.resume()
        do {
            return try await withTaskCancellationHandler {
                for try await response in responses { return response }
                throw CancellationError()
            } onCancel: {
                task.cancel()
            }
        } catch is CancellationError {
            throw .cancelled
        } catch let error as URLError {
            throw Task.isCancelled && error.code == .cancelled ? .cancelled : .unreachable(error.code)
        } catch {
            throw .unreachable(.unknown)
        }
    }
}

/// Refuses redirects: following one would send the bearer to an address that the server names.
private final class TaskDelegate: NSObject, URLSessionTaskDelegate {
    private let onWaiting: @Sendable (URLSessionTask) -> Void

    init(onWaiting: @escaping @Sendable (URLSessionTask) -> Void) { self.onWaiting = onWaiting }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    /// Called on Apple systems only, if the session waits for a network.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) { onWaiting(task) }
}

/// Scheme, host and port: a token is never sent to another origin.
struct Origin: Equatable {
    private let scheme: String
    private let host: String
    private let port: Int

    init?(_ url: URL) {
        let url = url.absoluteURL
        guard let scheme = url.scheme?.lowercased(), scheme == "https" || scheme == "http",
            let host = url.host?.lowercased(), !host.isEmpty
        else { return nil }
        self.scheme = scheme
        self.host = host
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// `true` if requests cannot be read in transit.
    var keepsSecrets: Bool {
        scheme == "https" || ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
    }
}
