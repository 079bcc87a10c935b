private import Base

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
