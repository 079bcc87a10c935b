import Secrets

extension SealedSecret {
    /// Returns a value in the form of a sealed one.
    static func sample() throws -> SealedSecret {
        try SealedSecret(bytes: [1, 8] + Array("0a1b2c3d".utf8) + [UInt8](repeating: 7, count: 28))
    }
}
