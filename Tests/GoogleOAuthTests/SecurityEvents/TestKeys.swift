import Secrets

/// Keys made once for all tests, since making one takes a while.
enum TestKeys {
    static let pool = Result { try (0..<3).map { _ in try RSAPrivateKey.generate() } }

    /// One of three; the same number names the same key.
    static func key(_ number: Int) throws -> RSAPrivateKey { try pool.get()[number] }
}
