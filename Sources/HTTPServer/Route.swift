/// One method on one path, with its handler.
package struct Route: Sendable {
    package typealias Handler = @Sendable (ServerRequest, PathValues) async -> ServerReply

    /// Called before the handler, like ``HTTPServer/ImmediateHandler``.
    package typealias ImmediateHandler = @Sendable (ServerRequest, PathValues) -> ServerReply?

    let method: String
    let pattern: String
    let parts: [String]
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
        parts = RequestTarget.segments(of: pattern)
        self.immediateHandler = immediateHandler
        self.handler = handler
    }

    func matches(_ segments: [String]) -> Bool {
        parts.count == segments.count && zip(parts, segments).allSatisfy { Self.matches($0, segment: $1) }
    }

    private static func matches(_ part: String, segment: String) -> Bool {
        let isVariable = part.utf8.first == UInt8(ascii: "{")
        guard isVariable else { return part == segment }
        return !segment.isEmpty && segment != "." && segment != ".."
    }
}
