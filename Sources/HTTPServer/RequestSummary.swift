/// The log entry of a finished request.
///
/// It has no path, query, header or body, because they may hold secrets and names.
package struct RequestSummary: Sendable {
    package let id: String
    package let method: String

    /// The pattern of the matched route, or "-".
    package let route: String

    /// The status of the response, or 0 if none was sent.
    package let status: Int

    /// The time from the request's first line to the response's last byte.
    package let duration: Duration

    /// The size of the response's body.
    package let bytes: Int

    /// ``ServerRequest/clientAddress``.
    package let address: String
}
