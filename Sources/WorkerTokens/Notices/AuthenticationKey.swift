/// A key for HMAC-SHA256 (RFC 2104), which is never printed.
struct AuthenticationKey: Sendable {
    private let inner: [UInt8]
    private let outer: [UInt8]

    init(_ key: [UInt8]) {
        let short = key.count > SHA256.blockLength ? SHA256.digest(of: key) : key
        let block = short + [UInt8](repeating: 0, count: SHA256.blockLength - short.count)
        inner = block.map { $0 ^ 0x36 }
        outer = block.map { $0 ^ 0x5c }
    }

    func code(for message: [UInt8]) -> [UInt8] {
        SHA256.digest(of: outer + SHA256.digest(of: inner + message))
    }

    /// Compares two codes without stopping at the first difference, whose place an attacker could measure.
    static func areEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
        guard first.count == second.count else { return false }
        var difference: UInt8 = 0
        for (one, other) in zip(first, second) { difference |= one ^ other }
        return difference == 0
    }
}

extension AuthenticationKey: CustomStringConvertible, CustomReflectable {
    var description: String { "AuthenticationKey" }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
