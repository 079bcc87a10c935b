private import Base
private import Glibc

/// Why a server could not start.
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
        /// libmicrohttpd could not start its threads, or GnuTLS failed.
        case cannotStart
        /// The certificate file does not hold a PEM certificate.
        case badCertificate
        /// The key file does not hold an unencrypted PEM key.
        case badKey
        /// The key does not belong to the first certificate of the file.
        case foreignKey
    }

    package let code: Code
    package let message: String

    /// The system's error number, or 0.
    package var systemError: Int32 = 0

    package var description: String {
        systemError == 0 ? message : "\(message): \(SystemCallError(call: message, code: systemError).reason)"
    }
}

extension HTTPServerError {
    /// `true` if another process already listens on the address.
    package var isAddressInUse: Bool { systemError == EADDRINUSE }
}
