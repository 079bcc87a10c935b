/// One request, as ``HTTPClient`` sends it.
package struct HTTPRequest: Sendable {
    package let pattern: RequestPattern
    package let body: HTTPBody?
    /// For requests to Amazon's services.
    package let signature: AWSSignature?

    /// One of many requests that differ in nothing but the body.
    package init(_ pattern: RequestPattern, body: HTTPBody) {
        self.pattern = pattern
        self.body = body
        signature = nil
    }

    /// A request like no other.
    package init(
        method: RequestPattern.Method,
        endpoint: Endpoint,
        headers: [(String, String)] = [],
        body: HTTPBody? = nil,
        signature: AWSSignature? = nil
    ) {
        pattern = RequestPattern(method: method, endpoint: endpoint, headers: headers, isLasting: false)
        self.body = body
        self.signature = signature
    }

    /// Whether each part can be sent as it is.
    var isSendable: Bool { pattern.isSendable && signature?.isSendable ?? true }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Method, host and path: queries, headers and bodies carry tokens.
    package var description: String { pattern.description }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
