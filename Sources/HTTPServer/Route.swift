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
