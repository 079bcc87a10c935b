/// One method on one path, and who answers it.
package struct Route: Sendable {
    package typealias Handler = @Sendable (ServerRequest, PathValues) async -> ServerReply

    /// Answers first and at once, as ``HTTPServer/Quick``.
    package typealias Quick = @Sendable (ServerRequest, PathValues) -> ServerReply?

    let method: String
    let pattern: String
    let quick: Quick?
    let handler: Handler

    /// In the pattern "{name}" stands for any one segment, as in "/v1/grants/{user_id}/token".
    package init(_ method: String, _ pattern: String, quick: Quick? = nil, handler: @escaping Handler) {
        self.method = method
        self.pattern = pattern
        self.quick = quick
        self.handler = handler
    }
}

/// What stood in a path where its pattern has names in braces.
package struct PathValues: Sendable {
    private let values: [(name: String, value: String)]

    init(_ values: [(name: String, value: String)]) {
        self.values = values
    }

    /// - Precondition: the route's pattern has that name.
    package subscript(name: String) -> String {
        guard let value = values.first(where: { $0.name == name })?.value else {
            preconditionFailure("the pattern has no {\(name)}")
        }
        return value
    }
}

/// Finds the route of each request.
///
/// HEAD is answered by the route for GET, whose handler sees GET; the server leaves the body out. Segments are compared as
/// decoded, but an encoded slash does not part them. A name in braces matches neither nothing nor "." and "..", with which
/// some client or proxy may mean another path.
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
            return PathValues(values)
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

    /// A path that no route has is answered by `unknownPath`, a method that a known path does not have by `wrongMethod`, which
    /// is told the methods that it has; the router adds the Allow header.
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

    /// The answer of a route that needs not wait for it; nil for all else, which ``answer(_:)`` deals with.
    package func quickAnswer(_ request: ServerRequest) -> ServerReply? {
        guard case .route(let route, let values) = match(request), let quick = route.quick else { return nil }
        return quick(Self.asGet(request), values).map { Self.named(route, $0) }
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
