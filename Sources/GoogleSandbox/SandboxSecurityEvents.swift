internal import Crypto

/// The state of Cross-Account Protection in the sandbox: keys, security event tokens, and the project's one stream
/// (https://developers.google.com/identity/protocols/risc).
struct SandboxSecurityEvents: Sendable {
    /// The issuer as in Google's example, with the slash.
    static let issuer = "https://accounts.google.com/"

    /// A current or earlier key for security events.
    struct SigningKey: Sendable {
        let id: String
        let key: RSAPrivateKey
    }

    /// An account that may manage the stream.
    struct Account: Sendable {
        let email: String
        let key: RSAPublicKey
    }

    /// The stream's configuration, once a client has created it.
    struct Stream: Sendable {
        var url: String
        var events: [String]
        var isEnabled = true
        /// The requested verification events.
        ///
        /// The sandbox does not post them.
        var verifications: [OrderedJSON] = []
    }

    /// The keys in order of creation.
    ///
    /// The last one signs.
    private(set) var keys: [SigningKey] = []
    var accounts: [String: Account] = [:]
    var stream: Stream?
    /// `true` if every request about the stream is refused, as if it belonged to another account.
    var isForbidden = false
    private var lastNumber: Int64 = 0

    /// Returns the key that signs.
    ///
    /// It is made on first use, because that takes a while.
    mutating func signingKey() throws(ControlError) -> SigningKey {
        if let key = keys.last { return key }
        return try rotateKey(keepingOld: true)
    }

    @discardableResult
    mutating func rotateKey(keepingOld: Bool) throws(ControlError) -> SigningKey {
        let newKey = try Self.newKey()
        // The id is derived from the key, so that two runs of the sandbox never give one id to two keys.
        let name = Base64URL.encode(Array(Digest.sha256(try Self.publicNumbers(of: newKey).modulus).prefix(12)))
        let key = SigningKey(id: name, key: newKey)
        keys = (keepingOld ? keys : []) + [key]
        return key
    }

    static func newKey() throws(ControlError) -> RSAPrivateKey {
        do throws(SignatureError) {
            return try RSAPrivateKey.generate()
        } catch {
            throw ControlError("cannot generate a key: \(error)", status: 500)
        }
    }

    /// Deletes the stream.
    ///
    /// Keys and accounts stay, because tokens signed with them are still in use.
    mutating func deleteStream() {
        stream = nil
        isForbidden = false
    }

    mutating func nextNumber() -> Int64 {
        lastNumber += 1
        return lastNumber
    }

    /// Returns the JSON Web Key Set with every key that may have signed something.
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
        do throws(SignatureError) {
            return try key.publicNumbers()
        } catch {
            throw ControlError("cannot read the key: \(error)", status: 500)
        }
    }
}
