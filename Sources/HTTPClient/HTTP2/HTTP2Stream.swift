internal import CNGHTTP2
internal import Crypto

/// The stream on which a request travels over HTTP/2.
struct HTTP2Stream {
    /// The way in which a stream ended.
    enum End: Equatable {
        /// The response is complete.
        case complete
        /// The server or the framing ended the stream, with one of HTTP/2's error codes.
        case reset(UInt32)
        /// This side ended the stream.
        case cancelled
    }

    var id: Int32 = 0
    /// The position in the session's list.
    var index = 0
    var end: End?
    /// The number of bytes of the request's body that were sent.
    var sentBodyBytes = 0
    /// `true` once any header has arrived, even of an interim response.
    var hasResponse = false

    /// `true` if the server has not processed the request: it refused the stream, or ended the connection before it.
    var isRefused: Bool { end == .reset(NGHTTP2_REFUSED_STREAM.rawValue) }
}

extension HTTPTransfer {
    var unsentBytes: Int { bodyLength - stream.sentBodyBytes }

    var bodyLength: Int { request.body?.count ?? 0 }

    /// Moves the next bytes of the request's body into the output.
    func moveBody(_ count: Int, into output: inout ErasedBytes) {
        let start = stream.sentBodyBytes
        request.body?.withBytes { output.append($0.extracting(start..<(start + count))) }
        stream.sentBodyBytes = start + count
    }

    /// Returns the response, or the reason why there is none, once the stream has ended.
    func resultOfStream() -> Result<HTTPResponse, HTTPFailure> {
        if let abortFailure { return .failure(abortFailure) }
        switch stream.end {
        case .complete:
            guard let response = takeResponse() else { fallthrough }
            return .success(response)
        case nil, .cancelled:
            return .failure(failure(.receiveFailed, "the stream ended without a response"))
        case .reset(let code):
            let name = unsafe String(cString: nghttp2_http2_strerror(code))
            return .failure(failure(.receiveFailed, "the stream ended with \(name) before the response was complete"))
        }
    }
}

/// The limits of one response.
struct ResponseLimits {
    var headerBytes = 65_536
    var bodyBytes = 65_536

    /// The bytes that a server may send on a stream before it must wait: a body up to the limit, and one frame more.
    var streamWindow: Int { min(max(65_535, bodyBytes + 16_384), Int(Int32.max)) }

    /// The bytes that a server may send on a connection before it must wait: many bodies at once.
    static let connectionWindow = 16 * 1024 * 1024
}

extension ErasedBytes {
    // Each of these is one access to a buffer: Swift checks every access to a class's properties. They return `false`
    // if the bytes would exceed the limit.

    mutating func appendLine(_ line: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + line.count <= limit else { return false }
        unsafe append(line)
        return true
    }

    mutating func appendField(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + name.count + value.count + 4 <= limit else { return false }
        unsafe append(name)
        append(UInt8(ascii: ":"))
        append(UInt8(ascii: " "))
        unsafe endLine(value)
        return true
    }

    mutating func appendStatusLine(_ status: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + Self.version.count + status.count + 2 <= limit else { return false }
        append(Self.version)
        unsafe endLine(status)
        return true
    }

    private mutating func endLine(_ bytes: UnsafeRawBufferPointer) {
        unsafe append(bytes)
        append(UInt8(ascii: "\r"))
        append(UInt8(ascii: "\n"))
    }

    private static let version = Array("HTTP/2 ".utf8)
}

/// The functions that nghttp2 calls from inside the calls of the session.
///
/// Each passes one event on.
extension HTTP2Session {
    /// Makes a session with these functions, with limits against floods, and with memory that is wiped.
    static func makeSession(_ session: inout OpaquePointer?) -> Int32 {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        defer {
            unsafe nghttp2_session_callbacks_del(callbacks)
            unsafe nghttp2_option_del(options)
        }
        guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0, unsafe nghttp2_option_new(&options) == 0 else {
            return NGHTTP2_ERR_NOMEM.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, fieldsBegin)
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks, fieldReceived)
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frameReceived)
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, bodyReceived)
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, streamClosed)
        unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, frameNotSent)
        unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks, bodySender)
        // The priority of streams is not used, so closed streams do not have to be kept for it.
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        unsafe nghttp2_option_set_max_reserved_remote_streams(options, 0)
        // The session ends if a server makes it owe more answers to PING and SETTINGS than these.
        unsafe nghttp2_option_set_max_outbound_ack(options, 256)
        unsafe nghttp2_option_set_max_settings(options, 32)
        var memory = unsafe cnghttp2_wiped_memory()
        return unsafe nghttp2_session_client_new3(&session, callbacks, nil, options, &memory)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> HTTP2Session? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<HTTP2Session>.fromOpaque(context).takeUnretainedValue()
    }

    private static let fieldsBegin: nghttp2_on_begin_headers_callback = { _, frame, context in
        guard let frame = unsafe frame, let session = unsafe of(context) else { return 0 }
        unsafe session.transfer(frame.pointee.hd.stream_id)?.beginFields()
        return 0
    }

    private static let fieldReceived: nghttp2_on_header_callback = {
        _,
        frame,
        name,
        nameLength,
        value,
        valueLength,
        _,
        context in
        guard let frame = unsafe frame, let session = unsafe of(context),
            let transfer = unsafe session.transfer(frame.pointee.hd.stream_id)
        else { return 0 }
        let isKept = unsafe transfer.receiveField(
            name: UnsafeRawBufferPointer(start: name, count: nameLength),
            value: UnsafeRawBufferPointer(start: value, count: valueLength)
        )
        guard !isKept else { return 0 }
        session.finish(transfer, .cancelled)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }

    private static let frameReceived: nghttp2_on_frame_recv_callback = { _, frame, context in
        guard let frame = unsafe frame, let session = unsafe of(context) else { return 0 }
        let header = unsafe frame.pointee.hd
        let isHeaders = header.type == NGHTTP2_HEADERS.rawValue
        guard isHeaders || header.type == NGHTTP2_DATA.rawValue, let transfer = session.transfer(header.stream_id)
        else {
            return 0
        }
        if isHeaders { transfer.endFields() }
        return header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) == 0 ? 0 : session.complete(transfer)
    }

    private static let bodyReceived: nghttp2_on_data_chunk_recv_callback = { _, _, id, bytes, count, context in
        guard let session = unsafe of(context), let transfer = session.transfer(id), transfer.stream.end == nil else {
            return 0
        }
        let isKept = unsafe transfer.receiveBody(UnsafeRawBufferPointer(start: bytes, count: count))
        return isKept ? 0 : session.abort(transfer)
    }

    private static let streamClosed: nghttp2_on_stream_close_callback = { _, id, code, context in
        guard let session = unsafe of(context), let transfer = session.transfer(id) else { return 0 }
        session.close(transfer, code: code)
        return 0
    }

    private static let frameNotSent: nghttp2_on_frame_not_send_callback = { _, frame, _, context in
        guard let frame = unsafe frame, unsafe frame.pointee.hd.type == NGHTTP2_HEADERS.rawValue else { return 0 }
        unsafe of(context)?.refuse(frame.pointee.hd.stream_id)
        return 0
    }

    /// Says how many bytes of a body are in the next frame.
    ///
    /// ``bodySender`` moves them.
    static let bodySource: nghttp2_data_source_read_callback = { _, id, _, limit, flags, _, context in
        guard let session = unsafe of(context), let transfer = session.transfer(id), let flags = unsafe flags else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let count = min(limit, transfer.unsentBytes)
        unsafe flags.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if count == transfer.unsentBytes { unsafe flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }

    /// The length of a frame's header (https://www.rfc-editor.org/rfc/rfc9113#section-4.1).
    private static let frameHeaderLength = 9

    private static let bodySender: nghttp2_send_data_callback = { _, frame, header, count, _, context in
        guard let frame = unsafe frame, let session = unsafe of(context),
            let transfer = unsafe session.transfer(frame.pointee.hd.stream_id)
        else { return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue }
        let header = unsafe UnsafeRawBufferPointer(start: header, count: frameHeaderLength)
        unsafe session.sendBody(of: transfer, frameHeader: header, count: count)
        return 0
    }
}
