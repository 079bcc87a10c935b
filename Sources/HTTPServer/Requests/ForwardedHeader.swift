/// Reads the `Forwarded` header (https://www.rfc-editor.org/rfc/rfc7239#section-4).
struct ForwardedHeader {
    private var rest: Substring.UTF8View

    /// Returns the node that each proxy saw (`for=`), empty where a proxy names none.
    ///
    /// Returns `nil` if the header is malformed. Quotes are read from the first byte on, because a quoted text might
    /// contain what a client sent, such as a host.
    static func nodes(of header: String) -> [String]? {
        var reader = ForwardedHeader(rest: Substring(header).utf8)
        var nodes: [String] = []
        repeat {
            guard let node = reader.element() else { return nil }
            nodes.append(node)
        } while reader.skip(",")
        return reader.rest.isEmpty ? nodes : nil
    }

    /// Reads the pairs up to a comma, and returns the value of the one that is named `for`.
    private mutating func element() -> String? {
        var node: String?
        repeat {
            skipBlanks()
            let name = word(until: "=;, \t\"")
            if !name.isEmpty {
                guard skip("="), let value = value() else { return nil }
                if name.lowercased() == "for" {
                    guard node == nil else { return nil }
                    node = value
                }
            }
            skipBlanks()
        } while skip(";")
        return node ?? ""
    }

    /// Reads quoted or plain text.
    ///
    /// Some proxies write an IPv6 address without the quotes that it needs.
    private mutating func value() -> String? {
        guard skip("\"") else { return word(until: ";, \t\"") }
        var value = word(until: "\\\"")
        while skip("\\"), let escaped = rest.popFirst() {
            value += String(decoding: [escaped], as: UTF8.self) + word(until: "\\\"")
        }
        return skip("\"") ? value : nil
    }

    private mutating func word(until ends: String) -> String {
        let word = rest.prefix { !ends.utf8.contains($0) }
        rest = rest.dropFirst(word.count)
        return String(Substring(word))
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skipBlanks() { rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") } }
}
