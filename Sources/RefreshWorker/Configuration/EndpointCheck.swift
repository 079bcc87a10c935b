/// What is wrong with the address of an endpoint, in words for the user; `nil` when it is good.
///
/// Tokens travel to an endpoint, so it must be https; http is good only where nothing leaves the machine. The check is
/// strict on purpose: what it accepts is read alike by every URL parser.
func checkEndpoint(_ address: String) -> String? {
    guard address.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "\\") }) else {
        return "an address has no spaces, backslashes or characters beyond ASCII"
    }
    let lowercased = address.lowercased()
    let isEncrypted = lowercased.hasPrefix("https://")
    guard isEncrypted || lowercased.hasPrefix("http://") else { return "must begin with https://" }
    guard !address.contains("#") else { return "must have no #fragment" }
    let rest = lowercased.dropFirst(isEncrypted ? 8 : 7)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    guard !authority.contains("@") else { return "must have no user or password in it" }
    guard let host = EndpointHost(authority) else { return "has no valid host and port after ://" }
    guard isEncrypted || host.isLoopback else {
        return "must be https: http is allowed only on this machine (localhost, 127.0.0.1, [::1])"
    }
    return nil
}

/// The host of an endpoint, once it and its port are found to be well formed.
private struct EndpointHost {
    let isLoopback: Bool

    init?(_ authority: Substring) {
        let host: Substring
        let port: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            port = authority[authority.index(after: end)...]
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else { return nil }
            isLoopback = host == "::1"
        } else {
            host = authority.prefix { $0 != ":" }
            port = authority[host.endIndex...]
            guard Self.isName(host) else { return nil }
            isLoopback = host == "localhost" || Self.isLoopbackAddress(host)
        }
        guard Self.isPort(port) else { return nil }
    }

    /// Labels of letters, digits, `-` and `_` with dots between: a name or an IPv4 address.
    private static func isName(_ host: Substring) -> Bool {
        guard host.utf8.count <= 253 else { return false }
        return host.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.count)
                && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
        }
    }

    /// 127.0.0.0/8 in its plain spelling of four decimal numbers; `127.1` and octal spellings do not count.
    private static func isLoopbackAddress(_ host: Substring) -> Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "127" else { return false }
        return parts.allSatisfy { part in
            guard let number = UInt8(part) else { return false }
            return String(number) == part
        }
    }

    private static func isPort(_ port: Substring) -> Bool {
        guard !port.isEmpty else { return true }
        let digits = port.dropFirst()
        guard port.hasPrefix(":"), digits.allSatisfy({ "0"..."9" ~= $0 }), let number = UInt16(digits) else {
            return false
        }
        return number > 0
    }
}
