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
package struct HandleKey: Sendable {
    private static let salt = Array("refresh-worker handle 1".utf8)
    private static let paddedLength = 32
    private static let nonce = 0..<CipherContext.nonceLength

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
    package func seal(_ text: String) throws(SealError) -> [UInt8] {
        var message = Array(text.utf8)
        let excess = message.count % Self.paddedLength
        message.append(contentsOf: repeatElement(0, count: excess == 0 ? 0 : Self.paddedLength - excess))
        var bytes = Array(nonceKey.authenticate(message).prefix(Self.nonce.count))
        bytes.append(contentsOf: repeatElement(0, count: message.count + CipherContext.tagLength))
        var span = bytes.mutableSpan
        var buffer = unsafe span.mutableBytes
        let cipher = try cipherKey.withBytes { (key) throws(SealError) in
            try CipherContext(.seal, key: key, nonce: buffer.bytes.extracting(Self.nonce))
        }
        try unsafe cipher.transform(message.span.bytes, into: &buffer, at: Self.nonce.upperBound)
        try cipher.writeTag(into: &buffer, at: Self.nonce.upperBound + message.count)
        return bytes
    }

    /// Returns the text, or `nil` if the bytes were not made by ``seal(_:)`` with this key.
    package func open(_ sealed: [UInt8]) throws(SealError) -> String? {
        let end = sealed.count - CipherContext.tagLength
        guard end >= Self.nonce.upperBound else { return nil }
        var message = [UInt8](repeating: 0, count: end - Self.nonce.upperBound)
        let isIntact = try decrypt(sealed, ciphertext: Self.nonce.upperBound..<end, into: &message)
        guard isIntact else { return nil }
        let length = message.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0
        return String(decoding: message[..<length], as: UTF8.self)
    }

    private func decrypt(
        _ sealed: [UInt8],
        ciphertext: Range<Int>,
        into message: inout [UInt8]
    ) throws(SealError) -> Bool {
        var span = message.mutableSpan
        var buffer = unsafe span.mutableBytes
        let bytes = unsafe sealed.span.bytes
        let cipher = try cipherKey.withBytes { (key) throws(SealError) in
            try CipherContext(.open, key: key, nonce: bytes.extracting(Self.nonce))
        }
        try cipher.transform(bytes.extracting(ciphertext), into: &buffer, at: 0)
        return try cipher.isVerified(by: bytes.extracting(ciphertext.upperBound..<sealed.count))
    }
}
