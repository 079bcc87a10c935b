private import Base
import Crypto

/// A request's headers, with the check for ambiguous ones.
///
/// libmicrohttpd accepts some heads that two programs can read in two ways. Behind a proxy such a head hides a second
/// request in the first one's body (https://www.rfc-editor.org/rfc/rfc9112#section-11.2), so all of them are refused
/// here.
struct RequestHead {
    let version: String

    /// The size of the target in the request line.
    ///
    /// libmicrohttpd reports a target that ends at a NUL, and skips blanks before it. A proxy might read on after it.
    let targetSize: Int

    let headers: [ServerRequest.Field]

    /// The number of bytes that libmicrohttpd has read, including the first line.
    let size: Int

    /// `true` if a header holds more text than libmicrohttpd reports.
    let hasHiddenText: Bool

    /// The declared length of the body, or `Int.max` if the number is too large.
    var declaredLength: Int? {
        headers.values("Content-Length").first.map { Int($0) ?? .max }
    }

    /// `true` if the body is chunked.
    ///
    /// The bytes after it are then never read as another request.
    ///
    /// libmicrohttpd ends a chunk extension at a bare LF, where other programs might read on, and does not report it.
    var isChunked: Bool { !headers.values("Transfer-Encoding").isEmpty }

    var expectsContinue: Bool { !headers.values("Expect").isEmpty }

    /// The reason to refuse the request, or `nil` if it is sound.
    ///
    /// `reported` is the size of the target that libmicrohttpd reported.
    func refusal(maximumSize: Int, targetSize reported: Int) -> RequestRefusal? {
        guard size <= maximumSize else { return .headTooLarge }
        guard version == "HTTP/1.1" || version == "HTTP/1.0" else { return .unsupportedVersion }
        guard targetSize == reported else { return .malformed("the request line is malformed") }
        guard !hasHiddenText, headers.allSatisfy({ $0.name.isHeaderName && $0.value.isHeaderValue }) else {
            return .malformed("a header is malformed")
        }
        let hosts = headers.values("Host")
        guard hosts.count == 1 || hosts.isEmpty && version == "HTTP/1.0", hosts.allSatisfy(Self.isHost) else {
            return .malformed("one Host is needed")
        }
        return framingRefusal
    }

    private var framingRefusal: RequestRefusal? {
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

/// Collects a request's header fields and finds text between them that libmicrohttpd does not report.
///
/// libmicrohttpd ends a value at a NUL, and a proxy might read on after it. The fields are in the order of their lines
/// in the memory of the head. Between two of them only blanks and a line end are allowed, which libmicrohttpd
/// overwrites: CRLF with two NULs, and a bare LF with one. So a NUL before CRLF shows as a third one. A NUL before a
/// bare LF looks like CRLF and is not found.
@safe
struct HeadReader {
    private(set) var fields: [ServerRequest.Field] = []
    private let head: UnsafeRawBufferPointer
    /// The offset after the last value in the head, or `nil` before the first field.
    private var end: Int?
    private var hasHiddenText = false

    init(head: UnsafeRawBufferPointer) {
        unsafe self.head = unsafe head
    }

    mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        fields.append((unsafe String(decoding: name, as: UTF8.self), unsafe String(decoding: value, as: UTF8.self)))
        guard let nameStart = unsafe offset(of: name) else {
            hasHiddenText = true
            return
        }
        if let end { checkGap(from: end, to: nameStart, maximumLineEnds: 1) }
        // The offset after the name and its colon.
        let nameEnd = nameStart + name.count + 1
        end = nameEnd
        guard unsafe !value.isEmpty else { return }
        guard let valueStart = unsafe offset(of: value) else {
            // A folded line, which libmicrohttpd joins in other memory
            // (https://www.rfc-editor.org/rfc/rfc9112#section-5.2).
            hasHiddenText = true
            return
        }
        checkGap(from: nameEnd, to: valueStart, maximumLineEnds: 0)
        end = valueStart + value.count
    }

    /// Checks the rest of the head, and returns `true` if the head holds text that is not part of a field.
    mutating func finish() -> Bool {
        // The last field's line end, and the empty line.
        if let end { checkGap(from: end, to: unsafe head.count, maximumLineEnds: 2) }
        return hasHiddenText
    }

    private func offset(of part: UnsafeRawBufferPointer) -> Int? {
        guard let base = unsafe head.baseAddress, let start = part.baseAddress else { return nil }
        let offset = unsafe start - base
        return unsafe (0...head.count).contains(offset) ? offset : nil
    }

    private mutating func checkGap(from start: Int, to end: Int, maximumLineEnds: Int) {
        guard start <= end else {
            hasHiddenText = true
            return
        }
        let gap = unsafe head[start..<end]
        let ends = unsafe gap.count { $0 == 0x00 }
        let blanks = unsafe gap.count { $0 == 0x09 || $0 == 0x20 }
        if unsafe ends > 2 * maximumLineEnds || ends + blanks < gap.count { hasHiddenText = true }
    }
}

/// The parsed target of the request line.
///
/// libmicrohttpd's own decoding ends a path at %00, so that `/a%00b` would be read as `/a`. This one keeps every byte.
struct RequestTarget {
    /// Begins with a slash, unless the target is not a path.
    let path: String

    /// `true` for a target in origin or absolute form.
    ///
    /// The other forms are for proxies, and `OPTIONS *` (https://www.rfc-editor.org/rfc/rfc9112#section-3.2).
    ///
    /// Such a target must be refused: `x/v1` has the segments of `/v1`, so a proxy's rule for `/v1` would not match
    /// what the router matches.
    let isPath: Bool

    /// The decoded parts between the slashes.
    ///
    /// In `path` an encoded slash cannot be distinguished from a separator.
    let segments: [String]
    let query: [ServerRequest.Field]
}

extension RequestTarget {
    init(_ target: [UInt8]) {
        let local = Self.withoutOrigin(target)
        isPath = local.first == UInt8(ascii: "/")
        let parts = local.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        path = URLEncoding.decoded(parts[0], plusIsSpace: false)
        segments = parts[0].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
            .map { URLEncoding.decoded($0, plusIsSpace: false) }
        query = parts.count > 1 ? URLEncoding.fields(of: parts[1]) : []
    }

    /// Returns the segments of a path without percent-encoding.
    static func segments(of path: String) -> [String] {
        path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
    }

    /// Removes "http://host", in any case, from a target in absolute form, which a server must accept
    /// (https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2).
    private static func withoutOrigin(_ target: [UInt8]) -> ArraySlice<UInt8> {
        for scheme in ["http://", "https://"] where target.starts(with: scheme.utf8, by: { $0.asciiLowercased == $1 }) {
            let afterScheme = target.dropFirst(scheme.utf8.count)
            let end = afterScheme.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
            guard let end else { return [UInt8(ascii: "/")] }
            let local = afterScheme[end...]
            return local.first == UInt8(ascii: "/") ? local : [UInt8(ascii: "/")] + local
        }
        return target[...]
    }
}

/// Percent-decoding of paths, queries and forms (https://url.spec.whatwg.org/#urlencoded-parsing).
enum URLEncoding {
    /// Returns the fields of a query or of a form's body.
    static func fields(of bytes: some Collection<UInt8>) -> [ServerRequest.Field] {
        bytes.split(separator: UInt8(ascii: "&")).map { pair in
            guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else {
                return (decoded(pair, plusIsSpace: true), "")
            }
            return (
                decoded(pair[..<equals], plusIsSpace: true),
                decoded(pair[pair.index(after: equals)...], plusIsSpace: true)
            )
        }
    }

    /// Decodes each %XX to its byte.
    ///
    /// A percent sign that does not start one stays as it is.
    static func decoded(_ bytes: some Collection<UInt8>, plusIsSpace: Bool) -> String {
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = hexadecimalByte(rest.prefix(2)) {
                plain.append(value)
                rest = rest.dropFirst(2)
            } else if byte == UInt8(ascii: "+"), plusIsSpace {
                plain.append(UInt8(ascii: " "))
            } else {
                plain.append(byte)
            }
        }
        return String(decoding: plain, as: UTF8.self)
    }

    private static func hexadecimalByte(_ digits: some Collection<UInt8>) -> UInt8? {
        guard digits.count == 2 else { return nil }
        var value: UInt8 = 0
        for digit in digits {
            guard let half = Hexadecimal.value(of: digit) else { return nil }
            value = value << 4 | half
        }
        return value
    }
}
