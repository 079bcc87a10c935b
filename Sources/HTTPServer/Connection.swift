private import CMicroHTTPD
private import Glibc

/// A client's connection while one of its requests is being dealt with.
///
/// `@unchecked Sendable`: libmicrohttpd lets any thread call `MHD_resume_connection` on a suspended connection, and everything
/// else here is called by the connection's own thread only. ``Exchange`` lets go of the connection as it resumes it.
@safe
struct Connection: @unchecked Sendable {
    private let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    var socket: Int32 { unsafe shim_connection_socket(pointer) }

    /// What the server keeps for the connection; nil before it has been told of it.
    var client: Client? {
        unsafe shim_connection_context(pointer).map {
            unsafe Unmanaged<Client>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// The other end's address, if it has an internet one.
    var network: NetworkAddress? { unsafe NetworkAddress(peer: UnsafeRawPointer(shim_connection_peer(pointer))) }

    /// Lets the connection's TLS session present that certificate; for a new connection, before its handshake.
    ///
    /// The client keeps the certificate: libmicrohttpd ends the session before it reports the connection as closed. A session
    /// that cannot take it has none, and its handshake fails.
    func present(_ certificate: ServerCertificate) {
        guard let session = unsafe shim_connection_tls_session(pointer) else { return }
        _ = unsafe certificate.present(in: session)
    }

    /// The head of the request that is being read; `method` is its first byte.
    func head(method: UnsafePointer<CChar>, version: UnsafePointer<CChar>) -> RequestHead {
        let start = unsafe UnsafeRawPointer(method)
        let size = Int(unsafe shim_request_head_size(pointer))
        var reader = unsafe HeadReader(head: UnsafeRawBufferPointer(start: start, count: size))
        unsafe withUnsafeMutablePointer(to: &reader) { reader in
            _ = unsafe MHD_get_connection_values_n(
                pointer,
                .HEADER_KIND,
                { context, _, name, nameSize, value, valueSize in
                    guard let reader = unsafe context?.assumingMemoryBound(to: HeadReader.self) else { return .NO }
                    unsafe reader.pointee.take(
                        name: UnsafeRawBufferPointer(start: name, count: nameSize),
                        value: UnsafeRawBufferPointer(start: value, count: valueSize)
                    )
                    return .YES
                },
                reader
            )
        }
        return RequestHead(
            version: unsafe String(cString: version),
            // Between the blank behind the method and the one before the version.
            targetSize: unsafe UnsafeRawPointer(version) - start - strlen(method) - 2,
            headers: reader.fields,
            size: size,
            hasHiddenText: reader.finish()
        )
    }

    /// Takes the connection out of its thread's hands, so that the thread serves others until ``resume()``.
    func suspend() { unsafe MHD_suspend_connection(pointer) }

    func resume() { unsafe MHD_resume_connection(pointer) }

    /// Hands the answer over to be sent; false if libmicrohttpd would not have it.
    func queue(_ response: ServerResponse, requestID: String, closing: Bool) -> Bool {
        guard (200...599).contains(response.status), let made = unsafe Self.made(of: response) else { return false }
        defer { unsafe MHD_destroy_response(made) }
        guard unsafe MHD_add_response_header(made, "Request-Id", requestID) == .YES else { return false }
        if closing, unsafe MHD_add_response_header(made, MHD_HTTP_HEADER_CONNECTION, "close") != .YES { return false }
        return unsafe MHD_queue_response(pointer, UInt32(response.status), made) == .YES
    }

    /// The answer in libmicrohttpd's form; nil if a header could split the answer in two, or memory has run out.
    private static func made(of response: ServerResponse) -> OpaquePointer? {
        let made = unsafe response.body.withUnsafeBytes { bytes in
            unsafe MHD_create_response_from_buffer(
                bytes.count,
                UnsafeMutableRawPointer(mutating: bytes.baseAddress),
                .RESPMEM_MUST_COPY
            )
        }
        guard let made = unsafe made else { return nil }
        for (name, value) in response.headers where unsafe MHD_add_response_header(made, name, value) != .YES {
            unsafe MHD_destroy_response(made)
            return nil
        }
        return unsafe made
    }
}

extension NetworkAddress {
    /// Reads a `sockaddr`; nil for what is no internet address: a unix socket's.
    init?(peer: UnsafeRawPointer?) {
        guard let peer = unsafe peer else { return nil }
        // Where the address lies in sockaddr_in and sockaddr_in6, and its size.
        let place: (offset: Int, size: Int)
        switch Int32(unsafe peer.load(as: sa_family_t.self)) {
        case AF_INET: place = (4, 4)
        case AF_INET6: place = (8, 16)
        default: return nil
        }
        unsafe self.init(bytes: UnsafeRawBufferPointer(start: peer + place.offset, count: place.size))
    }
}
