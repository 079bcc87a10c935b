internal import Base
internal import Crypto
internal import HTTPServer

/// The state of Cross-Account Protection in the sandbox: keys, which also sign ID tokens, security event tokens, and the project's one stream
/// (https://developers.google.com/identity/protocols/risc).
struct SandboxSecurityEvents: Sendable {
    /// The issuer as in Google's example, with the slash.
    static let issuer = "https://accounts.google.com/"

    /// The stream's configuration, once a client has created it.
    struct Stream: Sendable {
        var url: String
        var events: [String]
        var isEnabled = true
        /// The requested verification events. The sandbox does not post them.
        var verifications: [OrderedJSON] = []
    }

    struct SigningKey: Sendable {
        let id: String
        let key: RSAPrivateKey
    }

    /// An account that can manage the stream.
    struct Account: Sendable {
        let email: String
        let key: PublicKey
    }

    /// The keys in order of creation. The last one signs.
    private(set) var keys: [SigningKey] = []
    /// The accounts by the id of their key.
    var accounts: [String: Account] = [:]
    var stream: Stream?
    /// `true` if every request about the stream is refused, as if it belonged to another account.
    var isForbidden = false
    private var lastNumber: Int64 = 0

    /// Returns the key that signs. It is made on first use, because that takes a while.
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
        do throws(CryptoError) {
            return try RSAPrivateKey.generate()
        } catch {
            throw ControlError("cannot generate a key: \(error)", status: 500)
        }
    }

    /// Deletes the stream. Keys and accounts stay, because tokens signed with them are still in use.
    mutating func deleteStream() {
        stream = nil
        isForbidden = false
    }

    mutating func nextNumber() -> Int64 {
        lastNumber += 1
        return lastNumber
    }

    /// Returns the JSON Web Key Set with every key that might have signed something.
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

    static func publicNumbers(of key: RSAPrivateKey) throws(ControlError) -> RSAPrivateKey.PublicNumbers {
        do throws(CryptoError) {
            return try key.publicNumbers()
        } catch {
            throw ControlError("cannot read the key: \(error)", status: 500)
        }
    }
}

/// The routes of Cross-Account Protection: Google's own, and those by which a test controls them.
extension Sandbox {
    /// Answers like Google, and returns `nil` for a path that does not concern security events.
    func securityEventAnswer(_ request: ServerRequest) -> ServerReply? {
        let keyPaths = ["/.well-known/risc-configuration", Self.keysPath]
        let isKeyRoute = request.method == "GET" && keyPaths.contains(request.path)
        guard isKeyRoute || request.path.hasPrefix("/v1beta/stream") else { return nil }
        if let outage = withState({ $0.settings.outage }) {
            guard case .reply(let reply, _)? = withState({ $0.immediateOutcome(of: outage) }) else { return .drop }
            return reply
        }
        guard isKeyRoute else {
            return withSecurityEvents { $0.manage(request, now: time.now) }.map(ServerReply.respond)
        }
        guard request.path == Self.keysPath else {
            let base = "http://\(request.header("Host") ?? "127.0.0.1")"
            let body: OrderedJSON = [
                "issuer": .string(SandboxSecurityEvents.issuer),
                "jwks_uri": .string(base + Self.keysPath),
                "delivery_methods_supported": ["https://schemas.openid.net/secevent/risc/delivery-method/push"],
            ]
            return .respond(.json(body.text))
        }
        do throws(ControlError) {
            let keys = try withSecurityEvents { (securityEvents) throws(ControlError) in try securityEvents.keySet() }
            var response = ServerResponse.json(keys.text)
            response.headers.append(("Cache-Control", "public, max-age=3600, must-revalidate, no-transform"))
            return .respond(response)
        } catch {
            return .respond(.text(error.message, status: error.status))
        }
    }

    private static let keysPath = "/oauth2/v3/certs"

    /// Handles a control request about security events, and returns `nil` for a path that does not concern them.
    func controlSecurityEvents(_ path: String, body: OrderedJSON) throws(ControlError) -> OrderedJSON? {
        switch path {
        case "/control/security-events":
            let specification = try complete(SecurityEventSpecification(body, now: time.now))
            return try withSecurityEvents { (securityEvents) throws(ControlError) in
                try securityEvents.token(for: specification)
            }
        case "/control/id-tokens":
            return try withSecurityEvents { (securityEvents) throws(ControlError) in
                try securityEvents.idToken(body, at: time.now)
            }
        case "/control/security-events/rotate-key":
            let keepsOld = try body["keep_old"]?.bool("keep_old") ?? true
            let key = try withSecurityEvents { (securityEvents) throws(ControlError) in
                try securityEvents.rotateKey(keepingOld: keepsOld).id
            }
            return ["kid": .string(key)]
        case "/control/security-events/stream":
            let isForbidden = try body["forbidden"]?.bool("forbidden")
            return withSecurityEvents { securityEvents in
                securityEvents.isForbidden = isForbidden ?? securityEvents.isForbidden
                return securityEvents.streamView
            }
        case "/control/service-accounts":
            return try withSecurityEvents { (securityEvents) throws(ControlError) in try securityEvents.createAccount()
            }
        default:
            return nil
        }
    }

    /// Completes the specification with the data of the named grant: the account's id, and the client id as the
    /// audience.
    private func complete(_ incomplete: SecurityEventSpecification) throws(ControlError) -> SecurityEventSpecification {
        var specification = incomplete
        let grant = withState { state in
            if let token = specification.refreshToken {
                return state.indexByRefreshToken[token].map { state.grants[$0] }
            }
            if let sub = specification.sub { return state.grants.first { $0.sub == sub } }
            return state.grants.first { $0.email == specification.email }
        }
        specification.sub = specification.sub ?? grant?.sub
        specification.email = specification.email ?? grant?.email
        if specification.audience.isEmpty {
            specification.audience = [grant?.clientID ?? "sandbox.apps.googleusercontent.com"]
        }
        return specification
    }
}

extension SandboxSecurityEvents {
    fileprivate var streamView: OrderedJSON {
        [
            "url": stream.map { .string($0.url) } ?? .null,
            "enabled": stream.map { .bool($0.isEnabled) } ?? .null,
            "events_requested": .array((stream?.events ?? []).map(OrderedJSON.string)),
            "verifications": .array(stream?.verifications ?? []),
            "forbidden": .bool(isForbidden),
        ]
    }
}
