private import Glibc

extension ListenAddress {
    /// Checks that a server could listen on this TCP address now; throws the error that a server would throw.
    ///
    /// It binds the address and releases it without listening, so no client notices. Other kinds of address are not
    /// tried: a unix socket would leave a file.
    package func tryToBind() throws(HTTPServerError) {
        guard case .tcp(let address, let port) = self else { return }
        guard let endpoint = SocketAddress(address: address, port: port) else {
            throw HTTPServerError(
                code: .badAddress,
                message: "\(address) is not a numeric IPv4 or IPv6 address",
                systemError: 0
            )
        }
        let descriptor = socket(Int32(endpoint.family), Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw refusal }
        defer { close(descriptor) }
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, size) == 0, endpoint.bind(descriptor) else {
            throw refusal
        }
    }

    private var refusal: HTTPServerError {
        HTTPServerError(code: .cannotListen, message: "cannot listen on \(self)", systemError: errno)
    }
}

extension HTTPServerError {
    /// `true` if another process already listens on the address.
    package var isAddressInUse: Bool { systemError == EADDRINUSE }
}
