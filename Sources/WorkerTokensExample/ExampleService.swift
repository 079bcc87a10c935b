import Foundation
import WorkerTokens

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A service that calls Google with a user's token.
struct ExampleService {
    private let tokens: WorkerTokens

    /// Creates a service of the worker at the address of its internal listener, or at `unix:` and the path of its socket.
    init(worker: String, credential: String) throws {
        let unix = "unix:"
        if worker.hasPrefix(unix) {
            tokens = try WorkerTokens(unixSocket: String(worker.dropFirst(unix.count)), credential: credential)
        } else {
            tokens = try WorkerTokens(baseURL: worker, credential: credential, transport: sendWithURLSession)
        }
    }

    func call(_ address: String, asUser user: String) async throws {
        guard let url = URL(string: address) else { throw URLError(.badURL) }
        let answer = try await tokens.withToken(for: user) { token in
            var request = URLRequest(url: url)
            request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")
            let (data, response) = try await URLSession.withoutRedirects.data(for: request)
            let status = (response as? HTTPURLResponse)?.statusCode
            if status == 401 {
                WorkerTokensExample.say("Google refused the token")
                throw RefusedTokenError()
            }
            return String(decoding: data, as: UTF8.self)
        }
        WorkerTokensExample.say(answer)
    }
}

/// Sends a request of `WorkerTokens` with Foundation's client.
@Sendable
func sendWithURLSession(_ request: WorkerTokens.Request) async throws -> WorkerTokens.Response {
    guard let url = URL(string: request.url) else { throw URLError(.badURL) }
    var message = URLRequest(url: url, timeoutInterval: TimeInterval(request.timeout))
    message.httpMethod = request.method
    for header in request.headers { message.setValue(header.value, forHTTPHeaderField: header.name) }
    message.httpBody = Data(request.body)
    let (data, response) = try await URLSession.withoutRedirects.data(for: message)
    guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
    return WorkerTokens.Response(
        status: response.statusCode,
        retryAfter: response.value(forHTTPHeaderField: "Retry-After"),
        body: Array(data)
    )
}
