internal import CNGHTTP2

/// The functions that nghttp2 calls from inside the calls of the session; each passes one event on.
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

    /// Says how many bytes of a body are in the next frame; ``bodySender`` moves them.
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
