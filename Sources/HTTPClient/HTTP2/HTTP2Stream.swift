private import CNGHTTP2

/// The stream on which a request travels over HTTP/2.
struct HTTP2Stream {
    /// The way in which a stream ended.
    enum End: Equatable {
        case complete
        /// The server or the framing ended the stream, with one of HTTP/2's error codes.
        case reset(UInt32)
        /// This side ended the stream.
        case cancelled
    }

    var id: Int32 = 0
    /// The position in the session's list.
    var index = 0
    var end: End?
    /// Bytes of the request's body that were sent.
    var sentBodyBytes = 0
    /// `true` once any header has arrived, even of an interim response.
    var hasResponse = false

    /// `true` if the server has not processed the request: it refused the stream, or ended the connection before it.
    var isRefused: Bool { end == .reset(NGHTTP2_REFUSED_STREAM.rawValue) }
}
