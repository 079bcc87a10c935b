private import Glibc

/// The clients that can reach a listening socket.
package enum NetworkReach: Hashable, Sendable {
    /// Processes of this machine that can open the socket's file.
    case unixSocket
    /// Every process of this machine.
    case thisMachine
    case network
}

extension ListenAddress {
    /// The reach of a socket with this address.
    ///
    /// For an inherited socket, its own address counts.
    package var reach: NetworkReach {
        switch self {
        case .unix: .unixSocket
        case .tcp(let address, port: _): Self.reach(of: NetworkAddress(address))
        case .inherited(let descriptor):
            if let endpoint = SocketAddress(ofSocket: descriptor) {
                endpoint.family == AF_UNIX ? .unixSocket : Self.reach(of: endpoint.network)
            } else {
                .network
            }
        }
    }

    /// An unreadable address counts as reachable from the network.
    private static func reach(of address: NetworkAddress?) -> NetworkReach {
        address?.isLoopback == true ? .thisMachine : .network
    }
}
