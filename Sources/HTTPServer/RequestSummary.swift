/// What a log may say of a request that is over: no path, query, header or body, in which secrets and names travel.
package struct RequestSummary: Sendable {
    package let id: String
    package let method: String

    /// The pattern of the route that answered, or "-".
    package let route: String

    /// The answer's status, or 0 if none was sent.
    package let status: Int

    /// From the request's first line to the answer's last byte.
    package let duration: Duration

    /// The size of the answer's body.
    package let bytes: Int

    /// ``ServerRequest/clientAddress``.
    package let address: String
}
