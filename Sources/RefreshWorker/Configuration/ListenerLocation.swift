import HTTPServer

/// The origin of a listener's socket.
enum ListenerLocation: Equatable, Sendable {
    case own(ListenAddress)
    /// The socket of this name, which systemd passes.
    case systemd(name: String)

    /// `true` for a path, while the kind of a socket from systemd is not known.
    var isUnixSocket: Bool { if case .own(.unix) = self { true } else { false } }
}
