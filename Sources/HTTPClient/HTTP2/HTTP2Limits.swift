/// The limits of one response.
package struct HTTP2Limits: Sendable {
    package var headerBytes: Int
    package var bodyBytes: Int

    package init(headerBytes: Int, bodyBytes: Int) {
        self.headerBytes = headerBytes
        self.bodyBytes = bodyBytes
    }

    /// The bytes that a server may send on a stream before it must wait: a body up to the limit, and one frame more.
    var streamWindow: Int { min(max(65_535, bodyBytes + 16_384), Int(Int32.max)) }

    /// The bytes that a server may send on a connection before it must wait: many bodies at once.
    static let connectionWindow = 16 * 1024 * 1024
}
