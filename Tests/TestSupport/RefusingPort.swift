import Glibc

/// A port of 127.0.0.1 that refuses connections as long as this value lives.
///
///     let port = try RefusingPort()
///     let url = "http://127.0.0.1:\(port.number)/"
///
/// The port is bound, and nobody listens. A port that was only seen to be unused can be taken by another process.
package final class RefusingPort: Sendable {
    package let number: Int
    private let descriptor: Int32

    package init() throws { (descriptor, number) = try ScriptedServer.bind() }

    deinit { close(descriptor) }
}
