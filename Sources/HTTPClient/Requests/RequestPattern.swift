private import Base

/// The parts that the requests of one kind share: method, URL and headers.
///
/// It is validated, and prepared for HTTP/2, once when it is made.
package final class RequestPattern: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    let method: Method
    /// The URL, possibly with a query.
    let endpoint: Endpoint
    let headers: [(String, String)]
    /// The host and port, as HTTP/2 names them.
    let authority: String
    let fields: HTTP2Fields
    /// `true` if each header can be sent as it is: a line break in a value would start another header.
    let isSendable: Bool

    /// Makes a pattern for many requests, or for a single one that holds a secret.
    package init(method: Method, endpoint: Endpoint, headers: [(String, String)], isSecret: Bool = false) {
        self.method = method
        self.endpoint = endpoint
        self.headers = headers
        authority = endpoint.authority
        fields = HTTP2Fields(method: method, endpoint: endpoint, headers: headers, isSecret: isSecret)
        isSendable = headers.allSatisfy { $0.isHeaderName && $1.isHeaderValue }
    }
}

extension RequestPattern: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, host and path. Queries and headers are left out because they carry tokens.
    package var description: String { "\(method.rawValue) \(endpoint)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
