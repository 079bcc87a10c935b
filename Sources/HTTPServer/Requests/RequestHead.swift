private import Base

/// A request's headers, with the check for ambiguous ones.
///
/// libmicrohttpd accepts some heads that two programs can read in two ways. Behind a proxy such a head hides a second
/// request in the first one's body (https://www.rfc-editor.org/rfc/rfc9112#section-11.2), so all of them are refused
/// here.
struct RequestHead {
    let version: String

    /// The size of the target in the request line. libmicrohttpd reports a target that ends at a NUL, and skips blanks
    /// before it. A proxy might read on after it.
    let targetSize: Int

    let headers: [ServerRequest.Field]

    /// Bytes that libmicrohttpd has read, including the first line.
    let size: Int

    /// `true` if a header holds more text than libmicrohttpd reports.
    let hasHiddenText: Bool

    /// The declared length of the body, or `Int.max` if the number is too large.
    var declaredLength: Int? {
        guard let length = headers.values("Content-Length").first else { return nil }
        return Int(length) ?? .max
    }

    /// `true` if the body is chunked. The bytes after it are then never read as another request. libmicrohttpd ends a
    /// chunk extension at a bare LF, where other programs might read on, and does not report it.
    var isChunked: Bool { !headers.values("Transfer-Encoding").isEmpty }

    var expectsContinue: Bool { !headers.values("Expect").isEmpty }

    /// The reason to refuse the request, or `nil` if it is sound.
    ///
    /// `reported` is the size of the target that libmicrohttpd reported.
    func refusal(maximumSize: Int, targetSize reported: Int) -> RequestError? {
        guard size <= maximumSize else { return .headTooLarge }
        guard version == "HTTP/1.1" || version == "HTTP/1.0" else { return .unsupportedVersion }
        guard targetSize == reported else { return .malformed("the request line is malformed") }
        guard !hasHiddenText, headers.allSatisfy({ $0.name.isHeaderName && $0.value.isHeaderValue }) else {
            return .malformed("a header is malformed")
        }
        guard namesHost else { return .malformed("one Host is needed") }
        return framingRefusal
    }

    /// `true` if there is one sound `Host`, which HTTP/1.0 can leave out.
    private var namesHost: Bool {
        let hosts = headers.values("Host")
        if hosts.isEmpty { return version == "HTTP/1.0" }
        return hosts.count == 1 && Self.isHost(hosts[0])
    }

    private var framingRefusal: RequestError? {
        let lengths = headers.values("Content-Length")
        let encodings = headers.values("Transfer-Encoding")
        guard lengths.isEmpty || encodings.isEmpty else {
            return .malformed("Content-Length and Transfer-Encoding together")
        }
        guard lengths.count <= 1, lengths.allSatisfy(\.isDecimalNumber) else {
            return .malformed("Content-Length is malformed")
        }
        guard !encodings.isEmpty else { return nil }
        guard version == "HTTP/1.1", encodings.count == 1, encodings[0].lowercased() == "chunked" else {
            return .malformed("Transfer-Encoding is not chunked")
        }
        return nil
    }

    /// Returns `true` for a name or an address, with an optional port, and for an empty host: some clients' URLs have
    /// none.
    private static func isHost(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0.isASCIILetterOrDigit || "-._~!$&'()*+;=:[]%".utf8.contains($0) }
    }
}
