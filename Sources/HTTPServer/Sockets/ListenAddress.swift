private import Base
private import Glibc

package enum ListenAddress: Hashable, Sendable {
    /// A numeric IPv4 or IPv6 address. Port 0 takes any free port.
    case tcp(address: String, port: UInt16)

    /// A unix socket. Its file gets the mode and is removed when the server ends.
    case unix(path: String, mode: UInt32)

    /// A socket that already listens, such as one from systemd. The server closes its descriptor at the end, and leaves
    /// the socket itself listening for the other processes that hold it.
    case inherited(descriptor: Int32)

    /// Reads "127.0.0.1:8080", "[::1]:8080" or "unix:/run/name.sock".
    package init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst("unix:".count))
            guard path.hasPrefix("/"), UnixSocketFile.isUsable(path: path) else { return nil }
            self = .unix(path: path, mode: 0o600)
            return
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.count <= 5, digits.isDecimalNumber, let port = UInt16(digits)
        else { return nil }
        var address = text[..<colon]
        if address.first == "[", address.last == "]" {
            address = address.dropFirst().dropLast()
            guard address.contains(":") else { return nil }
        } else if address.contains(":") {
            return nil
        }
        guard NetworkAddress(address) != nil else { return nil }
        self = .tcp(address: String(address), port: port)
    }
}

extension ListenAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(let address, let port): address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
        case .unix(let path, mode: _): "unix:\(path)"
        case .inherited(let descriptor): "the inherited descriptor \(descriptor)"
        }
    }
}

extension ListenAddress {
    /// Checks that a server could listen on this TCP address now, and throws the error that a server would throw.
    ///
    /// It binds the address and releases it without listening, so no client notices. Other kinds of address are not
    /// tried: a unix socket would leave a file.
    package func tryToBind() throws(HTTPServerError) {
        guard case .tcp(let address, let port) = self else { return }
        guard let endpoint = SocketAddress(address: address, port: port) else {
            throw ListeningSocket.badAddress("\(address) is not a numeric IPv4 or IPv6 address")
        }
        close(try ListeningSocket.bound(to: endpoint, at: self))
    }
}
