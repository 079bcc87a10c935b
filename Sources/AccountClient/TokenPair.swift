import Foundation

/// The app's two tokens, which are never printed.
struct TokenPair: Equatable, Sendable {
    /// Nil if only the refresh token had been stored when the process ended; the first call then refreshes.
    let accessToken: String?
    let refreshToken: String
}

extension TokenPair: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "TokenPair" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The tokens as the server issues them.
struct TokenGrantResponse: Decodable, Sendable {
    enum CodingKeys: String, CodingKey {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
    }

    let accessToken: String
    let refreshToken: String

    var pair: TokenPair { TokenPair(accessToken: accessToken, refreshToken: refreshToken) }
}

/// The readable content of an access token.
enum AccessTokenClaims {
    private struct Claims: Decodable {
        let exp: Double
    }

    /// Returns the expiry in the token, or nil if it cannot be read.
    ///
    /// The signature is not checked: only the server has the key, and the expiry only decides when to refresh.
    static func expiry(of token: String) -> Date? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var payload = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        payload += String(repeating: "=", count: (4 - payload.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: payload) else { return nil }
        do {
            return Date(timeIntervalSince1970: try JSONDecoder().decode(Claims.self, from: data).exp)
        } catch {
            // A token without a readable expiry is used until the server refuses it.
            return nil
        }
    }
}
