package import Base
package import Crypto

/// The keys of a JSON Web Key Set (RFC 7517, section 5), by their ids.
package struct KeySet: Sendable {
    /// Most issuers have two or three keys.
    private static let maximumKeys = 64
    private static let maximumKeyID = 255

    /// The issuer, if the set was found through its configuration.
    let issuer: String?
    package let keys: [String: PublicKey]

    /// Reads a set, and skips keys without an id, for other uses, or of other kinds or unsafe sizes. A certificate
    /// beside a key (`x5c`) means nothing here. `nil` for a set that is too large or has no usable key.
    package init?(_ document: JSONValue?, issuer: String? = nil) {
        guard let entries = document?["keys"]?.array, entries.count <= Self.maximumKeys else { return nil }
        self.issuer = issuer
        keys = Dictionary(entries.compactMap(Self.entry)) { first, _ in first }
        if keys.isEmpty { return nil }
    }

    private static func isForSignatures(_ entry: JSONValue) -> Bool {
        guard let use = entry["use"] else { return true }
        return use.string == "sig"
    }

    private static func entry(_ entry: JSONValue) -> (String, PublicKey)? {
        guard isForSignatures(entry) else { return nil }
        guard let id = entry["kid"]?.string, (1...maximumKeyID).contains(id.utf8.count) else { return nil }
        func number(_ name: String) -> [UInt8] { entry[name]?.string.flatMap { Base64URL.decode($0) } ?? [] }
        do throws(CryptoError) {
            let key: PublicKey
            switch (entry["kty"]?.string, entry["crv"]?.string) {
            case ("RSA", _): key = try PublicKey(modulus: number("n"), exponent: number("e"))
            case ("EC", "P-256"): key = try PublicKey(x: number("x"), y: number("y"))
            default: return nil
            }
            if let algorithm = entry["alg"], algorithm.string != key.algorithm.rawValue { return nil }
            return (id, key)
        } catch {
            return nil
        }
    }

    /// The keys in words, such as "3 keys (2 RS256, 1 ES256)".
    package var summary: String {
        let counts = PublicKey.Algorithm.allCases.map { algorithm in
            (algorithm.rawValue, keys.values.count { $0.algorithm == algorithm })
        }
        let list = counts.filter { $1 > 0 }.map { "\($1) \($0)" }.joined(separator: ", ")
        return "\(keys.count) \(keys.count == 1 ? "key" : "keys") (\(list))"
    }
}
