/// The reason why a session cannot continue.
///
/// The text is nghttp2's; it holds nothing of a request or response.
package struct HTTP2Error: Error {
    package let message: String
}
