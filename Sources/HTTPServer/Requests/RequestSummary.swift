/// The log entry of a finished request.
///
/// It has no path, query, header or body, because they might hold secrets and names.
package struct RequestSummary: Sendable {
    package internal(set) var id: String
    package internal(set) var method = "-"

    /// The id of the trace that the caller named, or "-".
    package internal(set) var traceID = "-"

    /// The pattern of the matched route, or "-".
    package internal(set) var route = "-"

    /// The status of the response, or 0 if none was sent.
    package internal(set) var status = 0

    /// The time from the request's first line to the response's last byte.
    package internal(set) var duration = Duration.zero

    /// The size of the response's body.
    package internal(set) var bytes = 0

    /// ``ServerRequest/clientAddress``.
    package internal(set) var address: String
}
