import Base
import Crypto

/// A fetched set of the keys that sign security events.
struct KeySet: Sendable {
    /// Google has two or three keys; a much longer list is not read to its end.
    private static let maximumKeys = 64
    private static let longestKeyID = 255

    let issuer: String
    let keys: [String: RSAPublicKey]

    /// Reads a JSON Web Key Set (RFC 7517, section 5); skips keys of other kinds and uses.
    ///
    /// `nil` if it does not hold a usable key, so it cannot be Google's key set.
    init?(issuer: String, document: JSONValue) {
        self.issuer = issuer
        let entries = (document["keys"]?.array ?? []).prefix(Self.maximumKeys).compactMap(Self.entry)
        keys = Dictionary(entries) { first, _ in first }
        if keys.isEmpty { return nil }
    }

    private static func entry(_ key: JSONValue) -> (String, RSAPublicKey)? {
        guard key["kty"]?.string == "RSA",
            key["use"] == nil || key["use"]?.string == "sig",
            key["alg"] == nil || key["alg"]?.string == "RS256",
            let id = key["kid"]?.string, (1...longestKeyID).contains(id.utf8.count),
            let modulus = key["n"]?.string.flatMap({ Base64URL.decode($0) }),
            let exponent = key["e"]?.string.flatMap({ Base64URL.decode($0) })
        else { return nil }
        do throws(RSAKeyError) {
            return (id, try RSAPublicKey(modulus: modulus, exponent: exponent))
        } catch {
            return nil
        }
    }
}
