import HTTPClient
import Synchronization

@testable import Base
@testable import Crypto
@testable import GoogleOAuth

/// A signer with a published key set: a login of the app, or Google.
final class LoginKeys: Sendable {
    /// The caches read from memory, so it sends nothing.
    static let http = Result { try HTTPClient() }
    private static let pool = Result { try (0..<2).map { _ in try RSAPrivateKey.generate() } }

    private let published = Mutex<[String: RSAPrivateKey]?>([:])
    let first: RSAPrivateKey
    let second: RSAPrivateKey

    init() throws {
        let keys = try Self.pool.get()
        (first, second) = (keys[0], keys[1])
        publish(["k1": first])
    }

    /// Sets the keys, or `nil` while they cannot be fetched.
    func publish(_ keys: [String: RSAPrivateKey]?) { published.withLock { $0 = keys } }

    var source: KeySetCache.Source {
        .file { [self] in
            guard let keys = published.withLock({ $0 }) else { throw CancellationError() }
            return Array(try Self.document(keys).utf8)
        }
    }

    static func document(_ keys: [String: RSAPrivateKey]) throws -> String {
        let entries = try keys.map { id, key in
            let numbers = try key.publicNumbers()
            return #"{"kty":"RSA","kid":"\#(id)","n":"\#(Base64URL.encode(numbers.modulus))","e":"AQAB"}"#
        }
        return #"{"keys":[\#(entries.joined(separator: ","))]}"#
    }

    /// Returns a token with these claims, signed with the first key unless another one is given.
    func token(
        keyID: String = "k1",
        key: RSAPrivateKey? = nil,
        type: String = "JWT",
        _ claims: (inout JSONLine) -> Void
    ) throws -> String {
        var line = JSONLine()
        claims(&line)
        return try (key ?? first).signedToken(line, keyID: keyID, type: type).reveal()
    }
}
