import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import WorkerTokens

/// Returns the newest message of the token's user, as Google's API describes it.
@Sendable
func newestMail(_ token: WorkerTokens.Token) async throws -> String {
    var request = HTTPClientRequest(url: "https://gmail.googleapis.com/gmail/v1/users/me/messages?maxResults=1")
    request.headers.add(name: "Authorization", value: "Bearer \(token.value)")
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
    if response.status == .unauthorized { throw RefusedTokenError() }
    let body = try await response.body.collect(upTo: 1024 * 1024)
    return String(decoding: body.readableBytesView, as: UTF8.self)
}
