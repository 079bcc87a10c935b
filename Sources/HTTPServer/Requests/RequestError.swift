/// Why the server refuses a request before any handler gets it.
package struct RequestError: Hashable, Sendable {
    /// 400, 413, 414, 431, 503 or 505.
    package let status: Int

    /// A short explanation for the client.
    package let reason: String

    static let bodyTooLarge = RequestError(status: 413, reason: "the body is too large")
    static let targetTooLong = RequestError(status: 414, reason: "the request's target is too long")
    static let headTooLarge = RequestError(status: 431, reason: "the headers are too large")
    static let outOfMemory = RequestError(status: 503, reason: "too many requests at once, try again later")
    static let unsupportedVersion = RequestError(status: 505, reason: "the HTTP version is not supported")

    static func malformed(_ reason: String) -> RequestError { RequestError(status: 400, reason: reason) }

    /// Returns the explanation as plain text, for paths without an error format of their own.
    package static func plainResponse(_ refusal: RequestError, path: String) -> ServerResponse {
        .text("\(refusal.reason)\n", status: refusal.status)
    }
}
