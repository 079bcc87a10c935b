package import Base

/// A URL that the worker is allowed to call: https, or http to this machine.
///
/// The grammar is deliberately narrower than the URL standard's. It refuses everything that two parsers might read
/// differently (user info, backslashes, percent signs or non-ASCII letters in a host, shortened IPv4 addresses over
/// http), so that the host checked here is the host that libcurl calls.
package struct Endpoint: Hashable, Sendable {
    /// The URL as given, with its query.
    package let url: String
    let isSecure: Bool
    /// In lower case, and an IPv6 address without its brackets.
    package let host: String
    let port: Int?
    let path: String

    private static let maximumLength = 8192

    /// Reads a URL.
    ///
    /// An error never repeats it, because it can hold a secret.
    package init(_ string: String) throws(FormatError) {
        guard string.utf8.count <= Self.maximumLength else {
            throw FormatError("the URL is longer than \(Self.maximumLength) bytes")
        }
        guard string.utf8.allSatisfy(Self.isURLByte) else {
            throw FormatError("the URL has a blank or another character that must be percent-encoded")
        }
        guard let separator = string.firstRange(of: "://") else {
            throw FormatError("the URL does not begin with https://")
        }
        let scheme = string[..<separator.lowerBound].lowercased()
        guard ["http", "https"].contains(scheme) else { throw Self.notHTTPS }
        guard !string.contains("#") else { throw FormatError("the URL has a fragment (#)") }

        let rest = string[separator.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { throw FormatError("the URL has a user name or password in it") }
        let (host, port) = try Self.split(authority: authority)
        guard scheme == "https" || Self.isLoopback(host) else { throw Self.notHTTPS }

        let path = rest[authority.endIndex...].prefix { $0 != "?" }
        url = string
        isSecure = scheme == "https"
        self.host = host
        self.port = port
        self.path = path.isEmpty ? "/" : String(path)
    }

    /// Returns the endpoint at a path below this one.
    ///
    /// This one must not have a query.
    package func below(_ path: String) throws(FormatError) -> Endpoint {
        try Endpoint(url.hasSuffix("/") ? "\(url)\(path)" : "\(url)/\(path)")
    }

    var scheme: String { isSecure ? "https" : "http" }

    /// The host, with its brackets if it is an IPv6 address.
    private var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }

    /// The host, and the port if it is not the scheme's own, as a request names them.
    var authority: String {
        guard let port, port != (isSecure ? 443 : 80) else { return bracketedHost }
        return "\(bracketedHost):\(port)"
    }

    /// The URL without its query, and without the scheme's own port.
    package var urlWithoutQuery: String { "\(scheme)://\(authority)\(path)" }

    /// The path with the query, as a request names it.
    var target: String {
        let target = url.dropFirst("\(scheme)://".count).drop { $0 != "/" && $0 != "?" }
        return target.first == "/" ? String(target) : "/\(target)"
    }

    /// `true` if the host is this machine, by an address or name that cannot refer to another one.
    var isLoopback: Bool { Self.isLoopback(host) }

    private static let notHTTPS = FormatError(
        "the URL is not https (http is for localhost, 127.0.0.0/8 and [::1] only)"
    )
    private static let badHost = FormatError("the URL has no host, or one with characters that no host name has")

    private static func split(authority: Substring) throws(FormatError) -> (host: String, port: Int?) {
        let host: Substring
        let afterHost: Substring
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]") else { throw Self.badHost }
            host = authority[authority.index(after: authority.startIndex)..<end]
            afterHost = authority[authority.index(after: end)...]
            guard host.contains(":"), host.utf8.allSatisfy(isIPv6Byte) else { throw Self.badHost }
        } else {
            host = authority.prefix { $0 != ":" }
            afterHost = authority[host.endIndex...]
            guard isHostName(host) else { throw Self.badHost }
        }
        guard !host.isEmpty, host.utf8.count <= 253 else { throw Self.badHost }
        return (host.lowercased(), try port(in: afterHost))
    }

    /// Reads the port with its colon, if there is one.
    private static func port(in afterHost: Substring) throws(FormatError) -> Int? {
        guard !afterHost.isEmpty else { return nil }
        let problem = FormatError("the URL's port is not a number from 1 to 65535")
        let digits = afterHost.dropFirst()
        guard afterHost.first == ":", digits.utf8.count <= 5, digits.isDecimalNumber else { throw problem }
        guard let port = Int(digits), (1...65535).contains(port) else { throw problem }
        return port
    }

    private static func isHostName(_ host: Substring) -> Bool {
        guard host.utf8.allSatisfy(isHostByte) else { return false }
        return host.first != "." && host.first != "-" && !host.contains("..")
    }

    private static func isLoopback(_ host: String) -> Bool {
        guard host != "localhost", host != "::1" else { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { UInt8($0) }
        // A leading zero would make some parsers read the part as octal.
        let isCanonical = numbers.map(String.init) == parts.map(String.init)
        return isCanonical && numbers.count == 4 && numbers.first == 127
    }

    private static func isURLByte(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"\\\"<>^`{|}".utf8.contains(byte)
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte.isASCIILetterOrDigit || ".-_".utf8.contains(byte)
    }

    private static func isIPv6Byte(_ byte: UInt8) -> Bool {
        "0123456789abcdefABCDEF:.".utf8.contains(byte)
    }
}

extension Endpoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without its query, which might hold a token.
    package var description: String { "\(scheme)://\(bracketedHost)\(port.map { ":\($0)" } ?? "")\(path)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
