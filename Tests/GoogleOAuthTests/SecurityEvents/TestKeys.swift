import Crypto

/// Keys that are made once for all tests, because making one takes a while.
enum TestKeys {
    static let pool = Result { try (0..<3).map { _ in try RSAPrivateKey.generate() } }

    /// Returns one of three keys; the same number always gives the same key.
    static func key(_ number: Int) throws -> RSAPrivateKey { try pool.get()[number] }
}
