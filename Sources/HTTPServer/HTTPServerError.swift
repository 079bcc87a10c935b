private import Glibc

/// Why a server could not start.
package struct HTTPServerError: Error, CustomStringConvertible {
    package enum Code: Sendable {
        /// The address is neither IPv4 nor IPv6 in figures.
        case badAddress
        /// The system refused the socket: the port is taken, or the address is not this machine's.
        case cannotListen
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
