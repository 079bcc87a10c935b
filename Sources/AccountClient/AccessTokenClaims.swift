import Foundation

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
