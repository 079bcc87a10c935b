import Clocks
import JSON
import Secrets

/// A fetched set of the keys that sign security events.
struct KeySet: Sendable {
    /// Google has two or three keys; a much longer list is not read to its end.
    private static let mostKeys = 64
    private static let longestName = 255

    let issuer: String
    let keys: [String: RSAPublicKey]

    /// Reads a JSON Web Key Set (RFC 7517, section 5); skips keys of other kinds and uses.
    ///
    /// `nil` if it does not hold a usable key, so it cannot be Google's key set.
    init?(issuer: String, document: JSONValue) {
        self.issuer = issuer
        let entries = (document["keys"]?.array ?? []).prefix(Self.mostKeys).compactMap(Self.entry)
        keys = Dictionary(entries) { first, _ in first }
        if keys.isEmpty { return nil }
    }

    private static func entry(_ key: JSONValue) -> (String, RSAPublicKey)? {
        guard key["kty"]?.string == "RSA",
            key["use"] == nil || key["use"]?.string == "sig",
            key["alg"] == nil || key["alg"]?.string == "RS256",
            let name = key["kid"]?.string, (1...longestName).contains(name.utf8.count),
            let modulus = key["n"]?.string.flatMap({ Base64URL.decode($0) }),
            let exponent = key["e"]?.string.flatMap({ Base64URL.decode($0) })
        else { return nil }
        do throws(RSAKeyError) {
            return (name, try RSAPublicKey(modulus: modulus, exponent: exponent))
        } catch {
            return nil
        }
    }
}

/// The time for which an answer may be cached (RFC 9111, section 5.2.2.1).
enum CacheLifetime {
    private static let usual = Duration.seconds(3600)
    private static let limits = Duration.seconds(300)...Duration.seconds(86_400)

    /// Returns `max-age` within limits, or an hour if the header does not have it.
    static func read(cacheControl: String?) -> Duration {
        let directives = (cacheControl ?? "").lowercased().split(separator: ",")
        for directive in directives {
            let words = directive.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\"" } }
            guard words.count == 2, words[0] == "max-age", let seconds = Int64(words[1]) else { continue }
            return Duration.seconds(seconds.clamped(to: 0...1_000_000)).clamped(to: limits)
        }
        return usual
    }
}
