/// Finds the route of each request.
///
/// The GET route also answers HEAD: its handler sees GET, and the server omits the body. Segments are compared after
/// decoding, but an encoded slash does not separate them. A name in braces matches neither an empty segment nor "." and
/// "..", because some clients and proxies resolve those to another path.
package struct Router: Sendable {
    private enum Part: Sendable {
        case text(String)
        case value(String)
    }

    private struct Entry: Sendable {
        let parts: [Part]
        let route: Route

        init(_ route: Route) {
            self.route = route
            parts = RequestTarget.segments(of: route.pattern[...]).map { part in
                part.hasPrefix("{") && part.hasSuffix("}") ? .value(String(part.dropFirst().dropLast())) : .text(part)
            }
        }

        func values(in segments: [String]) -> PathValues? {
            guard segments.count == parts.count else { return nil }
            var values: [(name: String, value: String)] = []
            for (part, segment) in zip(parts, segments) {
                switch part {
                case .text(let text):
                    guard segment == text else { return nil }
                case .value(let name):
                    guard !segment.isEmpty, segment != ".", segment != ".." else { return nil }
                    values.append((name, segment))
                }
            }
            return PathValues(values: values)
        }
    }

    private enum Match {
        case route(Route, PathValues)
        case wrongMethod(allowed: [String])
        case unknownPath
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
        switch match(request) {
        case .route(let route, let values):
            return Self.named(route, await route.handler(Self.asGet(request), values))
        case .wrongMethod(let allowed):
            var response = wrongMethod(request, allowed)
            response.headers.append(("Allow", allowed.joined(separator: ", ")))
            return .respond(response)
        case .unknownPath:
            return .respond(unknownPath(request))
        }
    }

    /// Returns the reply of the route's immediate handler.
    ///
    /// `nil` leaves the request to ``answer(_:)``.
    package func immediateReply(_ request: ServerRequest) -> ServerReply? {
        guard case .route(let route, let values) = match(request), let immediateHandler = route.immediateHandler else {
            return nil
        }
        return immediateHandler(Self.asGet(request), values).map { Self.named(route, $0) }
    }

    private func match(_ request: ServerRequest) -> Match {
        let method = request.method == "HEAD" ? "GET" : request.method
        var allowed: [String] = []
        for entry in entries {
            guard let values = entry.values(in: request.segments) else { continue }
            if entry.route.method == method { return .route(entry.route, values) }
            allowed.append(entry.route.method)
        }
        guard !allowed.isEmpty else { return .unknownPath }
        if allowed.contains("GET") { allowed.append("HEAD") }
        return .wrongMethod(allowed: Set(allowed).sorted())
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
