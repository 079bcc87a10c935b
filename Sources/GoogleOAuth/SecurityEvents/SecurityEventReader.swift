package import Base
import Crypto

/// Verifies posted security event tokens.
///
///     let reader = SecurityEventReader(keys: keys, clientIDs: { ["123.apps.googleusercontent.com"] }, time: time)
///     let token = try await reader.read(body)
///     for event in token.events { … }
package struct SecurityEventReader: Sendable {
    /// The maximum size of a body.
    package static let maximumBody = 65_536

    let keys: KeySetCache
    /// Returns the client ids that are configured at this moment. A reload can change them.
    let clientIDs: @Sendable () -> [String]
    private let time: any TimeSource

    package init(keys: KeySetCache, clientIDs: @escaping @Sendable () -> [String], time: any TimeSource) {
        self.keys = keys
        self.clientIDs = clientIDs
        self.time = time
    }

    /// Returns the verified content of the body, which is a compact token. No claim is read before the signature is
    /// verified.
    package func read(_ body: [UInt8]) async throws(SecurityEventError) -> SecurityEventToken {
        let token: SignedToken
        do throws(CryptoError) {
            token = try SignedToken(Self.text(of: body), limit: Self.maximumBody)
        } catch {
            switch error {
            case .unsupportedAlgorithm: throw .invalid(.key, "the token is not signed by RS256")
            default: throw .invalid(.request, "the body is not a signed token")
            }
        }
        guard let keyID = token.keyID else { throw .invalid(.key, "the token does not name a key") }
        let issuer: String?
        let key: PublicKey?
        do throws(KeySetCache.Unavailable) {
            (issuer, key) = try await keys.key(id: keyID)
        } catch {
            throw .unavailable(retryAfter: error.retryAfter)
        }
        // An unknown key and a bad signature get the same message.
        guard let issuer, let key, token.verifies(with: key) else {
            throw .invalid(.key, "the token is not signed by a key of the issuer")
        }
        return try SecurityEventToken(claims: token.claims, issuer: issuer, clientIDs: Set(clientIDs()), at: time.now)
    }

    /// Returns the body as text, without the line break that tools add at the end.
    private static func text(of body: [UInt8]) -> String {
        let end = body.lastIndex { $0 != 0x0a && $0 != 0x0d && $0 != 0x20 } ?? -1
        return String(decoding: body[...end], as: UTF8.self)
    }
}
