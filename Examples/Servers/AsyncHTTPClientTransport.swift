import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import WorkerTokens

/// Sends a request of `WorkerTokens` with AsyncHTTPClient.
@Sendable
func sendWithAsyncHTTPClient(_ request: WorkerTokens.Request) async throws -> WorkerTokens.Response {
    var message = HTTPClientRequest(url: request.url)
    message.method = .RAW(value: request.method)
    for header in request.headers { message.headers.add(name: header.name, value: header.value) }
    if !request.body.isEmpty { message.body = .bytes(request.body) }
    let timeout = TimeAmount.seconds(Int64(request.timeout))
    let response = try await HTTPClient.shared.execute(message, timeout: timeout)
    let body = try await response.body.collect(upTo: 1024 * 1024)
    return WorkerTokens.Response(
        status: Int(response.status.code),
        retryAfter: response.headers.first(name: "Retry-After"),
        body: Array(body.readableBytesView)
    )
}
