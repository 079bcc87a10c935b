private import Base

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

    /// The decoded parts between the slashes. In `path` an encoded slash cannot be distinguished from a separator.
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
