private import CCrypto

/// A key that makes and checks messages by HMAC-SHA256 (RFC 2104).
package struct MessageKey: Sendable {
    static let codeLength = 32

    private let secret: Secret

    package init(_ secret: Secret) {
        self.secret = secret
    }

    /// The message's authentication code; compare it by ``ConstantTime`` alone.
    package func authenticate(_ message: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: Self.codeLength)
        let isMade = secret.withBytes { span in
            unsafe span.withUnsafeBytes { key in
                // A key without bytes still needs an address: the library takes none for "use the key of before".
                var nothing: UInt8 = 0
                return unsafe withUnsafePointer(to: &nothing) { nothing in
                    let start = unsafe key.baseAddress ?? UnsafeRawPointer(nothing)
                    let result = unsafe HMAC(
                        EVP_sha256(),
                        start,
                        Int32(key.count),
                        message,
                        message.count,
                        &code,
                        nil
                    )
                    return unsafe result != nil
                }
            }
        }
        // It fails only where memory has run out: a code of zeroes would be worse.
        precondition(isMade, "HMAC failed")
        return code
    }
}
