/// Finds the route of each request.
///
/// The GET route also answers HEAD: its handler sees GET, and the server omits the body. Segments are compared after
/// decoding, but an encoded slash does not separate them. A name in braces matches neither an empty segment nor "." and
/// "..", because some clients and proxies resolve those to another path. Nor does it match a segment that another route
/// spells out: with "/v1/connections/google" and "/v1/connections/{id}", google is no id.
package struct Router: Sendable {
    private let routes: [Route]
    /// The paths that one route spells out and another would match by a name in braces.
    private let spelledOut: [[String]]
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
        self.routes = routes
        spelledOut = routes.map(\.parts).filter { path in
            routes.contains { $0.parts != path && $0.matches(path) }
        }
        self.unknownPath = unknownPath
        self.wrongMethod = wrongMethod
    }

    package func answer(_ request: ServerRequest) async -> ServerReply {
        if let (route, values) = match(request) {
            return Self.named(await route.handler(Self.asGet(request), values), by: route)
        }
        let segments = request.segments
        var allowed = Set(routes.lazy.filter { matches($0, segments) }.map(\.method))
        guard !allowed.isEmpty else { return .respond(unknownPath(request)) }
        if allowed.contains("GET") { allowed.insert("HEAD") }
        let methods = allowed.sorted()
        var response = wrongMethod(request, methods)
        response.headers.append(("Allow", methods.joined(separator: ", ")))
        return .respond(response)
    }

    /// Returns the reply of the route's immediate handler.
    ///
    /// `nil` leaves the request to ``answer(_:)``.
    package func immediateReply(_ request: ServerRequest) -> ServerReply? {
        guard let (route, values) = match(request), let immediateHandler = route.immediateHandler else { return nil }
        return immediateHandler(Self.asGet(request), values).map { Self.named($0, by: route) }
    }

    private func match(_ request: ServerRequest) -> (Route, PathValues)? {
        let method = request.method == "HEAD" ? "GET" : request.method
        let segments = request.segments
        guard let route = routes.first(where: { $0.method == method && matches($0, segments) }) else { return nil }
        return (route, PathValues(parts: route.parts, segments: segments))
    }

    private func matches(_ route: Route, _ segments: [String]) -> Bool {
        guard route.matches(segments) else { return false }
        return !spelledOut.contains(segments) || route.parts == segments
    }

    private static func asGet(_ request: ServerRequest) -> ServerRequest {
        guard request.method == "HEAD" else { return request }
        var request = request
        request.method = "GET"
        return request
    }

    private static func named(_ reply: ServerReply, by route: Route) -> ServerReply {
        guard case .respond(var response) = reply else { return reply }
        response.route = route.pattern
        return .respond(response)
    }
}
