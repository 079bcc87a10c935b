private import Glibc

/// The reason why a server could not start.
package struct HTTPServerError: Error, CustomStringConvertible {
    package enum Code: Sendable {
        /// The address is not numeric IPv4 or IPv6, or the path is not valid for a unix socket.
        case badAddress
        /// The system refused the socket: the port is taken, or the address does not belong to this machine.
        case cannotListen
        /// An inherited descriptor is not a listening stream socket, or cannot be identified.
        case badInheritedSocket
        /// The system refused to raise the limit of open files.
        case openFiles
        /// libmicrohttpd could not start its threads.
        case cannotStart
    }

    package let code: Code
    package let message: String

    /// The system's error number, or 0.
    package let systemError: Int32

    package var description: String {
        guard systemError != 0, let reason = unsafe strerror(systemError) else { return message }
        return "\(message): \(unsafe String(cString: reason))"
    }
}
