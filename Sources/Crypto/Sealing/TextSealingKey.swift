/// Seals short texts, such as a user's id, as opaque bytes.
///
/// Equal texts give equal bytes.
///
/// The cipher is AES-256-GCM. Its nonce is an authentication code of the text, so that one nonce does not seal two
/// texts. The result shows that two texts are equal, and nothing else about them.
///
/// | bytes | content |
/// |---|---|
/// | 12 | nonce |
/// | a multiple of 32 | ciphertext: the text, followed by zero bytes, so that its length does not show |
/// | 16 | tag |
package struct TextSealingKey: Sendable {
    private static let salt = Array("refresh-worker handle 1".utf8)
    private static let paddedLength = 32

    private let cipherKey: Secret
    private let nonceKey: MessageKey

    /// Derives the key of an owner from a secret.
    ///
    /// Each owner has its own key.
    package init(from secret: Secret, owner: String) {
        let derivation = KeyDerivation(from: secret, salt: Self.salt)
        cipherKey = derivation.withKey(for: Array("cipher \(owner)".utf8)) { Secret(copying: $0) }
        nonceKey = MessageKey(derivation.withKey(for: Array("nonce \(owner)".utf8)) { Secret(copying: $0) })
    }

    /// Seals a text, which must not end with a NUL.
    package func seal(_ text: String) throws(CryptoError) -> [UInt8] {
        var message = Array(text.utf8)
        let excess = message.count % Self.paddedLength
        message.append(contentsOf: repeatElement(0, count: excess == 0 ? 0 : Self.paddedLength - excess))
        var bytes = Array(nonceKey.authenticate(message).prefix(CipherContext.nonceLength))
        bytes.append(contentsOf: repeatElement(0, count: message.count + CipherContext.tagLength))
        var span = bytes.mutableSpan
        var buffer = unsafe span.mutableBytes
        try cipherKey.withBytes { (key) throws(CryptoError) in
            try unsafe CipherContext.seal(message.span.bytes, key: key, into: &buffer, at: 0)
        }
        return bytes
    }

    /// Returns the text, or `nil` if the bytes were not made by ``seal(_:)`` with this key.
    package func open(_ sealed: [UInt8]) throws(CryptoError) -> String? {
        guard sealed.count >= CipherContext.overhead else { return nil }
        var message = [UInt8](repeating: 0, count: sealed.count - CipherContext.overhead)
        var span = message.mutableSpan
        var buffer = unsafe span.mutableBytes
        let isIntact = try cipherKey.withBytes { (key) throws(CryptoError) in
            try unsafe CipherContext.open(sealed.span.bytes, key: key, into: &buffer)
        }
        guard isIntact else { return nil }
        guard let last = message.lastIndex(where: { $0 != 0 }) else { return "" }
        return String(decoding: message[...last], as: UTF8.self)
    }
}
