internal import Secrets

/// The sandbox's side of Cross-Account Protection: keys, tokens of security events, and the one stream of the project
/// (https://developers.google.com/identity/protocols/risc).
struct SecurityEventDesk: Sendable {
    /// As Google's example has it, with the slash.
    static let issuer = "https://accounts.google.com/"

    /// A key that signs, or once signed, security events.
    struct SigningKey: Sendable {
        let id: String
        let key: RSAPrivateKey
    }

    /// Who may manage the stream.
    struct Account: Sendable {
        let email: String
        let key: RSAPublicKey
    }

    /// The stream's configuration, once somebody has made one.
    struct Stream: Sendable {
        var url: String
        var events: [String]
        var isEnabled = true
        /// The verification events that were asked for: the sandbox posts nothing itself.
        var verifications: [OrderedJSON] = []
    }

    /// The newest last: it signs.
    private(set) var keys: [SigningKey] = []
    var accounts: [String: Account] = [:]
    var stream: Stream?
    /// Whether Google says that somebody else owns the stream.
    var isForbidden = false
    private(set) var made: Int64 = 0

    /// The key that signs; made at the first wish, since that takes a while.
    mutating func signingKey() throws(ControlError) -> SigningKey {
        if let key = keys.last { return key }
        return try rotateKey(keepingOld: true)
    }

    @discardableResult
    mutating func rotateKey(keepingOld: Bool) throws(ControlError) -> SigningKey {
        let made = try Self.newKey()
        // Named after itself, so that no two runs of the sandbox give one name to two keys.
        let name = Base64URL.encode(Array(Digest.sha256(try Self.publicNumbers(of: made).modulus).prefix(12)))
        let key = SigningKey(id: name, key: made)
        keys = (keepingOld ? keys : []) + [key]
        return key
    }

    static func newKey() throws(ControlError) -> RSAPrivateKey {
        do throws(RSAKeyError) {
            return try RSAPrivateKey.generate()
        } catch {
            throw ControlError("no key could be made: \(error)", status: 500)
        }
    }

    /// Forgets the stream; keys and accounts go on, as what they signed does.
    mutating func forgetStream() {
        stream = nil
        isForbidden = false
    }

    mutating func nextNumber() -> Int64 {
        made += 1
        return made
    }

    /// The JSON Web Key Set with every key that may still have signed something.
    mutating func keySet() throws(ControlError) -> OrderedJSON {
        _ = try signingKey()
        var entries: [OrderedJSON] = []
        for key in keys {
            let numbers = try Self.publicNumbers(of: key.key)
            entries.append([
                "kty": "RSA",
                "alg": "RS256",
                "use": "sig",
                "kid": .string(key.id),
                "n": .string(Base64URL.encode(numbers.modulus)),
                "e": .string(Base64URL.encode(numbers.exponent)),
            ])
        }
        return ["keys": .array(entries)]
    }

    static func publicNumbers(
        of key: RSAPrivateKey
    ) throws(ControlError) -> (modulus: [UInt8], exponent: [UInt8]) {
        do throws(RSAKeyError) {
            return try key.publicNumbers()
        } catch {
            throw ControlError("the key cannot be read: \(error)", status: 500)
        }
    }
}
