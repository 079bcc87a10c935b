import Base
import HTTPServer

extension ListenerLocation {
    /// Returns the address to listen at.
    ///
    /// A unix socket gets a mode. `inherited` are the sockets that systemd passed.
    func address(mode: UInt32, inherited: [String: Int32]) throws -> ListenAddress {
        switch self {
        case .own(.unix(let path, mode: _)): return .unix(path: path, mode: mode)
        case .own(let address): return address
        case .systemd(let name):
            guard let descriptor = inherited[name] else {
                throw CommandError(
                    .configuration,
                    """
                    systemd has not passed a socket named \(DisplayedText(name)): see FileDescriptorName= in the \
                    socket's unit, and start the service through it
                    """
                )
            }
            return .inherited(descriptor: descriptor)
        }
    }
}
