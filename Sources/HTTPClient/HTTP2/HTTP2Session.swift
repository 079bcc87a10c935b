internal import CNGHTTP2
private import Crypto

/// The client's side of one HTTP/2 connection, without input and output: it turns requests and received bytes into
/// bytes to send and ended streams.
///
/// nghttp2 does the framing. It answers PING and SETTINGS, grants flow-control windows, checks the order and format of
/// everything that arrives, and ends the session if the server floods it.
@safe
package final class HTTP2Session {
    private let session: OpaquePointer
    private let limits: HTTP2Limits
    /// The streams that nghttp2 has not closed.
    private var open: [HTTP2Stream] = []
    private var ended: [HTTP2Stream] = []
    private var output = ErasedBytes(capacity: 4096)
    private var outputStart = 0

    package init(limits: HTTP2Limits) throws(HTTP2Error) {
        self.limits = limits
        var created: OpaquePointer?
        let result = unsafe Self.makeSession(&created)
        guard result == 0, let created = unsafe created else { throw HTTP2Error(code: Int(result)) }
        unsafe session = unsafe created
        unsafe nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
        try submitSettings()
    }

    deinit {
        unsafe nghttp2_session_del(session)
    }

    private func submitSettings() throws(HTTP2Error) {
        let settings = [
            setting(NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindow),
            setting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.headerBytes),
        ]
        try check(unsafe nghttp2_submit_settings(session, Self.noFlags, settings, settings.count))
        let window = Int32(HTTP2Limits.connectionWindow)
        try check(unsafe nghttp2_session_set_local_window_size(session, Self.noFlags, 0, window))
    }

    private func setting(_ name: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(name.rawValue), value: UInt32(clamping: value))
    }

    private static let noFlags = UInt8(NGHTTP2_FLAG_NONE.rawValue)
}

// MARK: - Streams

extension HTTP2Session {
    /// The number of streams that the server counts against its limit.
    package var openStreams: Int { open.count }

    /// The streams that have not ended.
    package var unfinished: [HTTP2Stream] { open.filter { $0.end == nil } }

    /// The number of streams that the server allows at the same time.
    package var maximumStreams: Int {
        Int(unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// `false` once the session takes no more requests: the server said so, or all stream numbers are used.
    package var takesRequests: Bool { unsafe nghttp2_session_check_request_allowed(session) != 0 }

    /// `true` once neither side expects or has anything to send.
    package var isOver: Bool {
        unsafe nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// Begins a request; its bytes are in the next output.
    package func submit(_ stream: HTTP2Stream) throws(HTTP2Error) {
        let context = unsafe Unmanaged.passUnretained(stream).toOpaque()
        var source = unsafe nghttp2_data_provider(source: nghttp2_data_source(), read_callback: Self.bodySource)
        let id = unsafe stream.requestHead.withFields(bodyLength: stream.bodyLength) { fields in
            unsafe withUnsafePointer(to: &source) { source in
                let body = unsafe stream.bodyLength > 0 ? source : nil
                return unsafe nghttp2_submit_request(session, nil, fields.baseAddress, fields.count, body, context)
            }
        }
        stream.id = Int32(try check(id))
        stream.index = open.count
        open.append(stream)
    }

    /// Ends a stream without its response; the server is notified by the next output.
    package func cancel(_ stream: HTTP2Stream) throws(HTTP2Error) {
        guard stream.end == nil else { return }
        stream.end = .cancelled
        try reset(stream)
    }

    /// Asks the server for a sign of life.
    package func ping() throws(HTTP2Error) {
        try check(unsafe nghttp2_submit_ping(session, Self.noFlags, nil))
    }

    /// Returns the streams that have ended since the last call; a cancelled stream is not among them.
    package func takeEnded() -> [HTTP2Stream] {
        guard !ended.isEmpty else { return [] }
        defer { ended.removeAll(keepingCapacity: true) }
        return ended
    }

    private func reset(_ stream: HTTP2Stream) throws(HTTP2Error) {
        let code = NGHTTP2_CANCEL.rawValue
        try check(unsafe nghttp2_submit_rst_stream(session, Self.noFlags, stream.id, code))
    }
}

// MARK: - Bytes

extension HTTP2Session {
    /// The most bytes of output that are prepared at a time; one frame more is possible.
    private static let outputLimit = 65_536

    /// Reads bytes from the server.
    package func receive(_ bytes: RawSpan) throws(HTTP2Error) {
        let result = unsafe bytes.withUnsafeBytes { bytes in
            unsafe nghttp2_session_mem_recv(session, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        }
        try check(result)
    }

    /// Calls the closure with the bytes to send until all are sent; the closure returns how many it sent.
    ///
    /// - Returns: `false` if the closure could not send all of them.
    package func send<Failure: Error>(
        _ write: (RawSpan) throws(Failure) -> Int
    ) throws(Failure) -> Result<Bool, HTTP2Error> {
        while true {
            do throws(HTTP2Error) {
                try prepareOutput()
            } catch {
                return .failure(error)
            }
            guard output.count > 0 else { return .success(true) }
            let count = try output.withBytes { (bytes) throws(Failure) in try write(bytes.extracting(outputStart...)) }
            guard count > 0 else { return .success(false) }
            outputStart += count
        }
    }

    /// `true` if output is prepared that could not be sent.
    package var hasUnsentOutput: Bool { outputStart < output.count }

    private func prepareOutput() throws(HTTP2Error) {
        guard outputStart == output.count else { return }
        output.removeAll()
        outputStart = 0
        while output.count < Self.outputLimit {
            var frames: UnsafePointer<UInt8>?
            let count = try check(unsafe nghttp2_session_mem_send(session, &frames))
            guard count > 0 else { return }
            unsafe output.append(UnsafeRawBufferPointer(start: frames, count: count))
        }
    }
}

// MARK: - Results

extension HTTP2Error {
    fileprivate init(code: Int) {
        message = unsafe String(cString: nghttp2_strerror(Int32(clamping: code)))
    }
}

extension HTTP2Session {
    /// Returns a result of nghttp2; a negative one is an error.
    @discardableResult
    private func check(_ result: some BinaryInteger) throws(HTTP2Error) -> Int {
        guard result >= 0 else { throw HTTP2Error(code: Int(result)) }
        return Int(result)
    }
}

// MARK: - Events from nghttp2

extension HTTP2Session {
    /// Ends a stream once.
    func finish(_ stream: HTTP2Stream, _ end: HTTP2Stream.End) {
        guard stream.end == nil else { return }
        stream.end = end
        ended.append(stream)
    }

    /// Ends a stream whose response must not continue; returns nghttp2's result.
    func abort(_ stream: HTTP2Stream, _ end: HTTP2Stream.End) -> Int32 {
        guard stream.end == nil else { return 0 }
        finish(stream, end)
        return unsafe nghttp2_submit_rst_stream(session, Self.noFlags, stream.id, NGHTTP2_CANCEL.rawValue)
    }

    /// Ends a stream whose response is complete.
    ///
    /// A body that the server did not wait for is not sent any further.
    func complete(_ stream: HTTP2Stream) -> Int32 {
        guard stream.isHeadComplete else { return abort(stream, .reset(NGHTTP2_PROTOCOL_ERROR.rawValue)) }
        guard stream.unsentBytes == 0 else { return abort(stream, .complete) }
        finish(stream, .complete)
        return 0
    }

    /// Forgets a stream that nghttp2 has closed.
    func close(_ stream: HTTP2Stream, code: UInt32) {
        finish(stream, .reset(code))
        let last = open.removeLast()
        guard last !== stream else { return }
        last.index = stream.index
        open[stream.index] = last
    }

    /// Ends a stream whose request could not be sent, and which the server has therefore not processed.
    func refuse(_ id: Int32) {
        // nghttp2 reports the end of a stream that it knows, in addition.
        if let stream = stream(id) { return finish(stream, .reset(NGHTTP2_REFUSED_STREAM.rawValue)) }
        guard let stream = open.first(where: { $0.id == id }) else { return }
        close(stream, code: NGHTTP2_REFUSED_STREAM.rawValue)
    }

    func stream(_ id: Int32) -> HTTP2Stream? {
        guard let context = unsafe nghttp2_session_get_stream_user_data(session, id) else { return nil }
        return unsafe Unmanaged<HTTP2Stream>.fromOpaque(context).takeUnretainedValue()
    }

    /// Appends a frame of a request's body to the output.
    func sendBody(of stream: HTTP2Stream, frameHeader: UnsafeRawBufferPointer, count: Int) {
        unsafe output.append(frameHeader)
        stream.moveBody(count, into: &output)
    }
}

/// The reason why a session cannot continue.
///
/// The text is nghttp2's; it holds nothing of a request or response.
package struct HTTP2Error: Error {
    package let message: String
}

/// The nghttp2 that this process runs with.
package enum HTTP2Library {
    package static var version: String {
        guard let info = unsafe nghttp2_version(0) else { return "" }
        return unsafe String(cString: info.pointee.version_str)
    }
}

/// The limits of one response.
package struct HTTP2Limits: Sendable {
    package var headerBytes: Int
    package var bodyBytes: Int

    package init(headerBytes: Int, bodyBytes: Int) {
        self.headerBytes = headerBytes
        self.bodyBytes = bodyBytes
    }

    /// The bytes that a server may send on a stream before it must wait: a body up to the limit, and one frame more.
    var streamWindow: Int { min(max(65_535, bodyBytes + 16_384), Int(Int32.max)) }

    /// The bytes that a server may send on a connection before it must wait: many bodies at once.
    static let connectionWindow = 16 * 1024 * 1024
}
