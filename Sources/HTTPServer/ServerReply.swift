/// The handler's decision on a request.
package enum ServerReply: Sendable {
    case respond(ServerResponse)

    /// Close the connection without sending a byte.
    case drop
}
