private import CMicroHTTPD
private import Glibc

/// A client's connection while one of its requests is being handled.
///
/// `@unchecked Sendable`: libmicrohttpd lets any thread call `MHD_resume_connection` on a suspended connection. Only
/// the connection's own thread calls the rest. ``Exchange`` drops the connection when it resumes it.
@safe
struct MicroHTTPConnection: @unchecked Sendable {
    private let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    var socket: Int32 { unsafe shim_connection_socket(pointer) }

    /// The server's record of the connection, or `nil` until libmicrohttpd has reported the connection as started.
    var client: ServerConnection? {
        unsafe shim_connection_context(pointer).map {
            unsafe Unmanaged<ServerConnection>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// The peer's address, if it is an IPv4 or IPv6 address.
    var network: NetworkAddress? { unsafe NetworkAddress(peer: UnsafeRawPointer(shim_connection_peer(pointer))) }

    /// Makes the connection's TLS session present the certificate.
    ///
    /// Call it for a new connection, before its handshake.
    ///
    /// The client keeps the certificate alive: libmicrohttpd ends the session before it reports the connection as
    /// closed. If the session does not accept the certificate, its handshake fails.
    func present(_ certificate: ServerCertificate) {
        guard let session = unsafe shim_connection_tls_session(pointer) else { return }
        _ = unsafe certificate.present(in: session)
    }

    /// Reads the head of the current request.
    ///
    /// `method` points to its first byte.
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
                    unsafe reader.pointee.append(
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
            // The bytes between the blank after the method and the blank before the version.
            targetSize: unsafe UnsafeRawPointer(version) - start - strlen(method) - 2,
            headers: reader.fields,
            size: size,
            hasHiddenText: reader.finish()
        )
    }

    /// Suspends the connection, so that its thread serves others until ``resume()``.
    func suspend() { unsafe MHD_suspend_connection(pointer) }

    func resume() { unsafe MHD_resume_connection(pointer) }

    /// Queues the response for sending, and returns `false` if libmicrohttpd rejects it.
    func queue(_ response: ServerResponse, requestID: String, closing: Bool) -> Bool {
        guard (200...599).contains(response.status), let made = unsafe Self.made(of: response) else { return false }
        defer { unsafe MHD_destroy_response(made) }
        guard unsafe MHD_add_response_header(made, "Request-Id", requestID) == .YES else { return false }
        if closing, unsafe MHD_add_response_header(made, MHD_HTTP_HEADER_CONNECTION, "close") != .YES { return false }
        return unsafe MHD_queue_response(pointer, UInt32(response.status), made) == .YES
    }

    /// Returns the response in libmicrohttpd's form, or `nil` if a header could split the response in two, or if memory
    /// ran out.
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
    /// Reads a `sockaddr`, and returns `nil` if it is not an IPv4 or IPv6 address, as with a unix socket.
    init?(peer: UnsafeRawPointer?) {
        guard let peer = unsafe peer else { return nil }
        // The offset and size of the address in sockaddr_in and sockaddr_in6.
        let field: (offset: Int, size: Int)
        switch Int32(unsafe peer.load(as: sa_family_t.self)) {
        case AF_INET: field = (4, 4)
        case AF_INET6: field = (8, 16)
        default: return nil
        }
        unsafe self.init(bytes: UnsafeRawBufferPointer(start: peer + field.offset, count: field.size))
    }
}
