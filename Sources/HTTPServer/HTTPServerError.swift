private import Glibc

/// Why a server could not start.
package struct HTTPServerError: Error, CustomStringConvertible {
    package enum Code: Sendable {
        /// The address is neither IPv4 nor IPv6 in figures, or the path of the unix socket cannot be one.
        case badAddress
        /// The system refused the socket: the port is taken, or the address is not this machine's.
        case cannotListen
        /// What was handed to the process is no listening stream socket, or cannot be told apart.
        case badInheritance
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
