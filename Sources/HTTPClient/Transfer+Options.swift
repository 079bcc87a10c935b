private import Base
internal import CCurl
private import Crypto

/// The libcurl options that prepare a handle for a request.
extension Transfer {
    func setOptions(of pattern: RequestPattern) throws(HTTPFailure) {
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_WRITEFUNCTION, Self.bodyReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_WRITEDATA, context))
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_HEADERFUNCTION, Self.headerReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HEADERDATA, context))
        try check(unsafe ccurl_easy_set_prerequest(easy, Self.prerequest))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PREREQDATA, context))
        try setConnectionOptions(for: pattern.endpoint)
        let offersHTTP2 = pattern.endpoint.scheme == .https && configuration.http2
        try set(CURLOPT_URL, pattern.endpoint.url)
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_HTTP_VERSION, Int(offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
        // Waiting for a connection to become shareable only helps if it may turn out to be HTTP/2.
        try set(CURLOPT_PIPEWAIT, offersHTTP2 ? 1 : 0)
        // CURLOPT_BUFFERSIZE stays at 16 KB: libcurl 7.88 refuses another size once a handle has its buffer, and may
        // keep the buffer over curl_easy_reset.
        try set(CURLOPT_FORBID_REUSE, 1)
        switch pattern.method {
        case .get: try set(CURLOPT_HTTPGET, 1)
        case .post: try set(CURLOPT_POST, 1)
        }
    }

    func setDeadline(remaining: Duration) throws(HTTPFailure) {
        // The loop enforces the total deadline: libcurl would end a transfer before checking whether its response has
        // arrived. libcurl reads zero as its own default, so the value is at least one.
        let total = remaining.wholeMilliseconds.clamped(to: 1...Int64(Int32.max))
        let connect = configuration.connectDeadline.wholeMilliseconds.clamped(to: 1...total)
        guard connectMilliseconds != Int(connect) else { return }
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(connect))
        connectMilliseconds = Int(connect)
    }

    func setBody(_ body: HTTPBody?) throws(HTTPFailure) {
        try set(CURLOPT_POSTFIELDSIZE, body?.count ?? 0)
        if let body, body.count > 0 {
            // libcurl reads from the body's own memory, which the submitted request keeps until the transfer is reset.
            try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_POSTFIELDS, body.address))
        } else {
            try set(CURLOPT_COPYPOSTFIELDS, "")
        }
    }

    func setHeaders(of pattern: RequestPattern, isSigned: Bool) throws(HTTPFailure) {
        for (name, value) in pattern.headers {
            // With a name and colon alone, libcurl would leave the header out.
            try unsafe appendHeader(value.allSatisfy(\.isWhitespace) ? "\(name);" : "\(name): \(value)")
        }
        // Without this line libcurl may ask for permission before it sends a body, which costs a round trip. libcurl
        // 7.88 signs the line although it does not send it, and then no server accepts the signature.
        if !isSigned { try unsafe appendHeader("Expect:") }
        // Only takes effect over HTTP/1.1: libcurl leaves it out of HTTP/2. The server then closes the connection first
        // and keeps the port in TIME_WAIT; this side would run out of ports. A proxy may drop the line, so it must not
        // be signed.
        if !isSigned { try unsafe appendHeader("Connection: close") }
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HTTPHEADER, headerList))
    }

    private func appendHeader(_ line: UnsafePointer<CChar>) throws(HTTPFailure) {
        guard let longer = unsafe curl_slist_append(headerList, line) else {
            throw HTTPFailure(kind: .other, message: "libcurl has no memory for a header")
        }
        unsafe headerList = unsafe longer
    }

    /// Makes libcurl sign the request: the body, and every header that it gets here.
    ///
    /// libcurl and its header list keep copies until the transfer is reset, and free them without wiping. A signed
    /// request never uses a lasting pattern.
    /// https://curl.se/libcurl/c/CURLOPT_AWS_SIGV4.html
    func sign(by signature: AWSSignature) throws(HTTPFailure) {
        try set(CURLOPT_AWS_SIGV4, "aws:amz:\(signature.region):\(signature.service)")
        let credentials = signature.credentials
        try unsafe Self.withText("", credentials.keyID) { (text) throws(HTTPFailure) in
            try unsafe check(ccurl_easy_set_string(easy, CURLOPT_USERNAME, text))
        }
        try unsafe Self.withText("", credentials.secretKey) { (text) throws(HTTPFailure) in
            try unsafe check(ccurl_easy_set_string(easy, CURLOPT_PASSWORD, text))
        }
        guard let sessionToken = credentials.sessionToken else { return }
        try unsafe Self.withText("X-Amz-Security-Token: ", sessionToken) { (line) throws(HTTPFailure) in
            try unsafe appendHeader(line)
        }
    }

    /// Calls the closure with the prefix and the secret as one C string.
    private static func withText(
        _ prefix: String,
        _ secret: Secret,
        _ body: (UnsafePointer<CChar>) throws(HTTPFailure) -> Void
    ) throws(HTTPFailure) {
        var text = ErasedBytes(capacity: prefix.utf8.count + secret.count + 1)
        text.append(Array(prefix.utf8))
        secret.withBytes { text.append($0) }
        text.append(0)
        try text.withBytes { (span) throws(HTTPFailure) in
            try unsafe span.withUnsafeBytes { (bytes) throws(HTTPFailure) in
                guard let start = bytes.baseAddress else { return }
                try unsafe body(start.assumingMemoryBound(to: CChar.self))
            }
        }
    }
}
