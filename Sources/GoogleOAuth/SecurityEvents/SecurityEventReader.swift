package import Clocks
import Secrets

/// Believes or refuses what is posted as one of Google's security event tokens.
package struct SecurityEventReader: Sendable {
    /// The longest body that is looked at.
    package static let longestBody = 65_536

    private let keys: SecurityEventKeys
    private let clientIDs: Set<String>
    private let time: any TimeSource

    package init(keys: SecurityEventKeys, clientIDs: Set<String>, time: any TimeSource) {
        self.keys = keys
        self.clientIDs = clientIDs
        self.time = time
    }

    /// What the body, a compact token, says.
    ///
    /// No claim is looked at before the signature has been found good.
    package func read(_ body: [UInt8]) async throws(SecurityEventRefusal) -> SecurityEventToken {
        let token: SignedToken
        do throws(TokenRefusal) {
            token = try SignedToken(Self.text(of: body), limit: Self.longestBody)
        } catch {
            switch error {
            case .unsupportedAlgorithm: throw .invalid(.key, "the token is not signed by RS256")
            default: throw .invalid(.request, "the body is not a signed token")
            }
        }
        guard let name = token.keyID else { throw .invalid(.key, "the token names no key") }
        let (issuer, key) = try await keys.key(named: name)
        // An unknown key and a bad signature are told in the same words.
        guard let key, token.verifies(with: key) else {
            throw .invalid(.key, "the token is not signed by a key of the issuer's")
        }
        return try SecurityEventToken(claims: token.claims, issuer: issuer, clientIDs: clientIDs, at: time.now)
    }

    /// The body as text, without the line break that tools put at its end.
    private static func text(of body: [UInt8]) -> String {
        let end = body.lastIndex { $0 != 0x0a && $0 != 0x0d && $0 != 0x20 } ?? -1
        return String(decoding: body[...end], as: UTF8.self)
    }
}
