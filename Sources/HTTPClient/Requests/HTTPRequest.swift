package struct HTTPRequest: Sendable {
    let pattern: RequestPattern
    let body: HTTPBody?

    /// Makes one of many requests that differ only in their bodies.
    package init(_ pattern: RequestPattern, body: HTTPBody?) {
        self.pattern = pattern
        self.body = body
    }

    /// Makes a single request with its own pattern.
    package init(
        method: RequestPattern.Method,
        endpoint: Endpoint,
        headers: [(String, String)] = [],
        body: HTTPBody? = nil
    ) {
        pattern = RequestPattern(method: method, endpoint: endpoint, headers: headers, isSecret: true)
        self.body = body
    }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method, host and path. Queries, headers and bodies are left out because they carry tokens.
    package var description: String { pattern.description }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
