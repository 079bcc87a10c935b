import Crypto

/// A value in the form of a sealed secret.
enum SealedSecretSample {
    static func make() throws -> SealedSecret {
        let nonce = [UInt8](repeating: 7, count: 12)
        let tag = [UInt8](repeating: 9, count: 16)
        return try SealedSecret(bytes: [2, 8] + Array("0a1b2c3d".utf8) + nonce + Array("text".utf8) + tag)
    }
}
