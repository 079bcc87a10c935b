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

    var peerAddress: String {
        guard let peer = unsafe shim_connection_peer(pointer) else { return "unix" }
        let family = Int32(unsafe peer.pointee.sa_family)
        guard family == AF_INET || family == AF_INET6 else { return "unix" }
        // Where the address lies in sockaddr_in and sockaddr_in6.
        let figures = unsafe UnsafeRawPointer(peer) + (family == AF_INET ? 4 : 8)
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let text = unsafe inet_ntop(family, figures, buffer.baseAddress, socklen_t(INET6_ADDRSTRLEN)) else {
                return "unknown"
            }
            return unsafe String(cString: text)
        }
    }

    var headers: [ServerRequest.Field] {
        var fields: [ServerRequest.Field] = []
        unsafe withUnsafeMutablePointer(to: &fields) { fields in
            _ = unsafe MHD_get_connection_values(
                pointer,
                .HEADER_KIND,
                { context, _, name, value in
                    guard let context = unsafe context, let name = unsafe name else { return .YES }
                    let fields = unsafe context.assumingMemoryBound(to: [ServerRequest.Field].self)
                    let text = if let value = unsafe value { unsafe String(cString: value) } else { "" }
                    unsafe fields.pointee.append((unsafe String(cString: name), text))
                    return .YES
                },
                fields
            )
        }
        return fields
    }

    func header(_ name: String) -> String? {
        guard let value = unsafe MHD_lookup_connection_value(pointer, .HEADER_KIND, name) else { return nil }
        return unsafe String(cString: value)
    }

    /// Takes the connection out of its thread's hands, so that the thread serves others until ``resume()``.
    func suspend() { unsafe MHD_suspend_connection(pointer) }

    func resume() { unsafe MHD_resume_connection(pointer) }

    /// Hands the answer over to be sent; false if libmicrohttpd would not have it, and then the connection is to be closed.
    func queue(_ response: ServerResponse, closing: Bool) -> Bool {
        queue(asIs: response, closing: closing) || queue(asIs: .text("unusable answer\n", status: 500), closing: true)
    }

    private func queue(asIs response: ServerResponse, closing: Bool) -> Bool {
        guard (200...599).contains(response.status), let made = unsafe Self.made(of: response) else { return false }
        defer { unsafe MHD_destroy_response(made) }
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
