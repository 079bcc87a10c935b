/// Finds the route of each request.
///
/// The GET route also answers HEAD: its handler sees GET, and the server omits the body. Segments are compared after
/// decoding, but an encoded slash does not separate them. A name in braces matches neither an empty segment nor "." and
/// "..", because some clients and proxies resolve those to another path.
package struct Router: Sendable {
    private struct Entry: Sendable {
        /// The texts between the slashes, and the names of values.
        let parts: [(isValue: Bool, text: String)]
        let route: Route

        init(_ route: Route) {
            self.route = route
            parts = RequestTarget.segments(of: route.pattern[...]).map { part in
                let isValue = part.hasPrefix("{") && part.hasSuffix("}")
                return (isValue, isValue ? String(part.dropFirst().dropLast()) : part)
            }
        }

        func values(in segments: [String]) -> PathValues? {
            guard segments.count == parts.count else { return nil }
            var values: [(name: String, value: String)] = []
            for (part, segment) in zip(parts, segments) {
                guard part.isValue else {
                    guard segment == part.text else { return nil }
                    continue
                }
                guard !segment.isEmpty, segment != ".", segment != ".." else { return nil }
                values.append((part.text, segment))
            }
            return PathValues(values: values)
        }
    }

    private let entries: [Entry]
    private let unknownPath: @Sendable (ServerRequest) -> ServerResponse
    private let wrongMethod: @Sendable (ServerRequest, [String]) -> ServerResponse

    /// Makes a router.
    ///
    /// `unknownPath` answers requests for paths without a route. `wrongMethod` answers requests for a known path with
    /// another method and gets the methods that the path has. The router adds the Allow header.
    package init(
        _ routes: [Route],
        unknownPath: @escaping @Sendable (ServerRequest) -> ServerResponse = { _ in .text("not found\n", status: 404) },
        wrongMethod: @escaping @Sendable (ServerRequest, [String]) -> ServerResponse = { _, _ in
            .text("method not allowed\n", status: 405)
        }
    ) {
        entries = routes.map(Entry.init)
        self.unknownPath = unknownPath
        self.wrongMethod = wrongMethod
    }

    package func answer(_ request: ServerRequest) async -> ServerReply {
        let (found, methods) = match(request)
        if let (route, values) = found {
            return Self.named(route, await route.handler(Self.asGet(request), values))
        }
        guard !methods.isEmpty else { return .respond(unknownPath(request)) }
        let allowed = methods.union(methods.contains("GET") ? ["HEAD"] : []).sorted()
        var response = wrongMethod(request, allowed)
        response.headers.append(("Allow", allowed.joined(separator: ", ")))
        return .respond(response)
    }

    /// Returns the reply of the route's immediate handler.
    ///
    /// `nil` leaves the request to ``answer(_:)``.
    package func immediateReply(_ request: ServerRequest) -> ServerReply? {
        guard let (route, values) = match(request).found, let immediateHandler = route.immediateHandler else {
            return nil
        }
        return immediateHandler(Self.asGet(request), values).map { Self.named(route, $0) }
    }

    /// Returns the request's route, or the methods of the other routes with its path.
    private func match(_ request: ServerRequest) -> (found: (Route, PathValues)?, methods: Set<String>) {
        let method = request.method == "HEAD" ? "GET" : request.method
        var methods: Set<String> = []
        for entry in entries {
            guard let values = entry.values(in: request.segments) else { continue }
            if entry.route.method == method { return ((entry.route, values), []) }
            methods.insert(entry.route.method)
        }
        return (nil, methods)
    }

    private static func asGet(_ request: ServerRequest) -> ServerRequest {
        guard request.method == "HEAD" else { return request }
        var request = request
        request.method = "GET"
        return request
    }

    private static func named(_ route: Route, _ reply: ServerReply) -> ServerReply {
        guard case .respond(var response) = reply else { return reply }
        response.route = route.pattern
        return .respond(response)
    }
}

/// One method on one path, with its handler.
package struct Route: Sendable {
    package typealias Handler = @Sendable (ServerRequest, PathValues) async -> ServerReply

    /// Called before the handler, like ``HTTPServer/ImmediateHandler``.
    package typealias ImmediateHandler = @Sendable (ServerRequest, PathValues) -> ServerReply?

    let method: String
    let pattern: String
    let immediateHandler: ImmediateHandler?
    let handler: Handler

    /// In the pattern "{name}" matches any one segment, as in "/v1/grants/{user_id}/token".
    package init(
        _ method: String,
        _ pattern: String,
        immediateHandler: ImmediateHandler? = nil,
        handler: @escaping Handler
    ) {
        self.method = method
        self.pattern = pattern
        self.immediateHandler = immediateHandler
        self.handler = handler
    }
}

/// The values in a path for the names in braces of its pattern.
package struct PathValues: Sendable {
    let values: [(name: String, value: String)]

    /// - Precondition: the route's pattern has this name.
    package subscript(name: String) -> String {
        guard let value = values.first(where: { $0.name == name })?.value else {
            preconditionFailure("the pattern has no {\(name)}")
        }
        return value
    }
}
