/// One request for ``HTTPClient``.
package struct HTTPRequest: Sendable {
    package let pattern: RequestPattern
    package let body: HTTPBody?
    /// Set for requests to AWS services only.
    package let signature: AWSSignature?

    /// Makes one of many requests that differ only in their bodies.
    package init(_ pattern: RequestPattern, body: HTTPBody) {
        self.pattern = pattern
        self.body = body
        signature = nil
    }

    /// Makes a single request with its own pattern.
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

    /// `true` if each part can be sent as it is.
    var isSendable: Bool { pattern.isSendable && signature?.isSendable ?? true }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, host and path.
    ///
    /// Queries, headers and bodies are left out because they carry tokens.
    package var description: String { pattern.description }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
