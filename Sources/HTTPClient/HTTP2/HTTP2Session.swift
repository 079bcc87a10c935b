internal import CNGHTTP2
private import Crypto

/// The client's side of one HTTP/2 connection, without input and output: it turns requests and received bytes into
/// bytes to send and ended streams.
///
/// nghttp2 does the framing. It answers PING and SETTINGS, and makes a WINDOW_UPDATE by itself as data is read (its
/// default). ``HTTP2Connection/flush(at:)`` sends them. It checks the order and format of everything that arrives, and
/// ends the session if the server floods it.
@safe
final class HTTP2Session {
    private let session: OpaquePointer
    private let userAgent: HTTP2Fields
    /// The requests whose streams nghttp2 has not closed.
    private var open: [HTTPTransfer] = []
    private var ended: [HTTPTransfer] = []
    private var output = ErasedBytes(capacity: 4096)
    private var outputStart = 0
    private var bodyBytes = 0

    init(_ configuration: HTTPClient.Configuration, userAgent: HTTP2Fields) throws(HTTPError) {
        self.userAgent = userAgent
        var created: OpaquePointer?
        let result = unsafe Self.makeSession(&created)
        guard result == 0, let created = unsafe created else { throw Self.failure(Int(result)) }
        unsafe session = unsafe created
        unsafe nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
        try submitSettings(configuration)
    }

    deinit {
        unsafe nghttp2_session_del(session)
    }

    private func submitSettings(_ configuration: HTTPClient.Configuration) throws(HTTPError) {
        // A body up to the limit, and one frame more.
        let streamWindow = min(max(65_535, configuration.maximumBodyBytes + 16_384), Int(Int32.max))
        let settings = [
            setting(NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, streamWindow),
            setting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, configuration.maximumHeaderBytes),
        ]
        try check(unsafe nghttp2_submit_settings(session, Self.noFlags, settings, settings.count))
        try check(unsafe nghttp2_session_set_local_window_size(session, Self.noFlags, 0, Self.connectionWindow))
    }

    private func setting(_ name: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(name.rawValue), value: UInt32(clamping: value))
    }

    /// The bytes that a server can send on a connection before it must wait: many bodies at once.
    private static let connectionWindow: Int32 = 16 * 1024 * 1024
    private static let noFlags = UInt8(NGHTTP2_FLAG_NONE.rawValue)
}

// MARK: - Streams

extension HTTP2Session {
    /// Streams that the server counts against its limit.
    var openStreams: Int { open.count }

    /// The requests whose streams have not ended.
    var unfinished: [HTTPTransfer] { open.filter { $0.stream.end == nil } }

    /// Streams that the server allows at the same time.
    var maximumStreams: Int {
        Int(unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// `false` once the session takes no more requests: the server said so, or all stream numbers are used.
    var takesRequests: Bool { unsafe nghttp2_session_check_request_allowed(session) != 0 }

    /// `true` once neither side expects or has anything to send.
    var isOver: Bool {
        unsafe nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// Begins a request.
    ///
    /// Its bytes are in the next output.
    func submit(_ transfer: HTTPTransfer) throws(HTTPError) {
        let context = unsafe Unmanaged.passUnretained(transfer).toOpaque()
        var source = unsafe nghttp2_data_provider(source: nghttp2_data_source(), read_callback: Self.bodySource)
        let pattern = transfer.request.pattern
        let length = transfer.bodyLength
        let id = unsafe pattern.fields.withFields(
            and: userAgent,
            bodyLength: pattern.method == .post ? length : nil
        ) { fields in
            unsafe withUnsafePointer(to: &source) { source in
                let body = unsafe length > 0 ? source : nil
                return unsafe nghttp2_submit_request(session, nil, fields.baseAddress, fields.count, body, context)
            }
        }
        transfer.stream.id = Int32(try check(id))
        transfer.stream.index = open.count
        open.append(transfer)
    }

    /// Ends a request without its response.
    ///
    /// The server is notified by the next output.
    func cancel(_ transfer: HTTPTransfer) throws(HTTPError) {
        guard transfer.stream.end == nil else { return }
        transfer.stream.end = .cancelled
        try check(reset(transfer))
    }

    /// Asks the server for a sign of life.
    func ping() throws(HTTPError) {
        try check(unsafe nghttp2_submit_ping(session, Self.noFlags, nil))
    }

    /// Returns the requests whose streams have ended since the last call, without those that were cancelled.
    func takeEnded() -> [HTTPTransfer] {
        guard !ended.isEmpty else { return [] }
        defer { ended.removeAll(keepingCapacity: true) }
        return ended
    }

    /// Returns the number of bytes of bodies that open requests have got since the last call.
    func takeBodyBytes() -> Int {
        defer { bodyBytes = 0 }
        return bodyBytes
    }

    private func reset(_ transfer: HTTPTransfer) -> Int32 {
        unsafe nghttp2_submit_rst_stream(session, Self.noFlags, transfer.stream.id, NGHTTP2_CANCEL.rawValue)
    }
}

// MARK: - Bytes

extension HTTP2Session {
    /// The maximum number of bytes of output that are prepared at a time. One frame more is possible.
    private static let maximumOutput = 65_536

    /// Reads bytes from the server.
    func receive(_ bytes: RawSpan) throws(HTTPError) {
        let result = unsafe bytes.withUnsafeBytes { bytes in
            unsafe nghttp2_session_mem_recv(session, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        }
        try check(result)
    }

    /// Calls the closure with the bytes to send until all are sent, or until it returns that it sent none.
    func send(_ write: (RawSpan) -> Int) throws(HTTPError) {
        while true {
            try prepareOutput()
            guard output.count > 0 else { return }
            let count = output.withBytes { bytes in write(bytes.extracting(outputStart...)) }
            guard count > 0 else { return }
            outputStart += count
        }
    }

    /// `true` if output is prepared that could not be sent.
    var hasUnsentOutput: Bool { outputStart < output.count }

    private func prepareOutput() throws(HTTPError) {
        guard outputStart == output.count else { return }
        output.removeAll()
        outputStart = 0
        while output.count < Self.maximumOutput {
            var frames: UnsafePointer<UInt8>?
            let count = try check(unsafe nghttp2_session_mem_send(session, &frames))
            guard count > 0 else { return }
            unsafe output.append(UnsafeRawBufferPointer(start: frames, count: count))
        }
    }
}

// MARK: - Results

extension HTTP2Session {
    /// Returns a result of nghttp2.
    ///
    /// A negative one is an error.
    @discardableResult
    private func check(_ result: some BinaryInteger) throws(HTTPError) -> Int {
        guard result >= 0 else { throw Self.failure(Int(result)) }
        return Int(result)
    }

    /// The text is nghttp2's.
    ///
    /// It holds nothing of a request or response.
    private static func failure(_ code: Int) -> HTTPError {
        HTTPError(kind: .other, message: unsafe String(cString: nghttp2_strerror(Int32(clamping: code))))
    }
}

// MARK: - Events from nghttp2

extension HTTP2Session {
    private func finish(_ transfer: HTTPTransfer, as end: HTTP2Stream.End) {
        guard transfer.stream.end == nil else { return }
        transfer.stream.end = end
        ended.append(transfer)
    }

    /// Ends a stream that must not continue, and returns nghttp2's result.
    private func abort(_ transfer: HTTPTransfer, as end: HTTP2Stream.End = .cancelled) -> Int32 {
        guard transfer.stream.end == nil else { return 0 }
        finish(transfer, as: end)
        return reset(transfer)
    }

    /// Ends a stream whose response is complete.
    ///
    /// A body that the server did not wait for is not sent any further.
    private func complete(_ transfer: HTTPTransfer) -> Int32 {
        guard transfer.isHeadComplete else { return abort(transfer, as: .reset(NGHTTP2_PROTOCOL_ERROR.rawValue)) }
        guard transfer.unsentBytes == 0 else { return abort(transfer, as: .complete) }
        finish(transfer, as: .complete)
        return 0
    }

    /// Forgets a stream that nghttp2 has closed.
    private func close(_ transfer: HTTPTransfer, code: UInt32) {
        finish(transfer, as: .reset(code))
        let last = open.removeLast()
        guard last !== transfer else { return }
        last.stream.index = transfer.stream.index
        open[transfer.stream.index] = last
    }

    /// Ends a stream whose request could not be sent, and which the server has therefore not processed.
    private func refuse(_ id: Int32) {
        // nghttp2 reports the end of a stream that it knows, in addition.
        if let transfer = transfer(id) { return finish(transfer, as: .reset(NGHTTP2_REFUSED_STREAM.rawValue)) }
        guard let transfer = open.first(where: { $0.stream.id == id }) else { return }
        close(transfer, code: NGHTTP2_REFUSED_STREAM.rawValue)
    }

    private func transfer(_ id: Int32) -> HTTPTransfer? {
        guard let context = unsafe nghttp2_session_get_stream_user_data(session, id) else { return nil }
        return unsafe Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    }

    /// Appends a frame of a request's body to the output.
    private func sendBody(of transfer: HTTPTransfer, frameHeader: UnsafeRawBufferPointer, count: Int) {
        unsafe output.append(frameHeader)
        transfer.moveBody(count, into: &output)
    }
}

// MARK: - Callbacks from nghttp2

/// The functions that nghttp2 calls from inside the calls of the session.
///
/// Each passes one event on.
extension HTTP2Session {
    /// Makes a session with these functions, with limits against floods, and with memory that is wiped.
    private static func makeSession(_ session: inout OpaquePointer?) -> Int32 {
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
        session.finish(transfer, as: .cancelled)
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
        session.bodyBytes += count
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

    /// Says how many bytes of a body are in the next frame. ``bodySender`` moves them.
    private static let bodySource: nghttp2_data_source_read_callback = { _, id, _, limit, flags, _, context in
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

extension HTTPClient {
    /// The version of nghttp2, which frames HTTP/2 on the connections of this libcurl.
    package static var nghttp2Version: String {
        guard let info = unsafe nghttp2_version(0) else { return "" }
        return unsafe String(cString: info.pointee.version_str)
    }
}
