internal import Base
internal import Crypto

extension SandboxSecurityEvents {
    /// Makes a security event token, either as Google would post it or forged.
    mutating func token(for specification: SecurityEventSpecification) throws(ControlError) -> OrderedJSON {
        let signer = try signingKey()
        let id = specification.id ?? "jti-\(nextNumber())"
        let claims = Self.claims(of: specification, id: id)
        let keyID = specification.keyID ?? signer.id
        let token: String
        switch specification.forgery {
        case .none:
            token = try Self.signed(claims, keyID: keyID, key: signer.key)
        case .unknownKey:
            token = try Self.signed(claims, keyID: specification.keyID ?? "unknown-\(nextNumber())", key: Self.newKey())
        case .badSignature:
            let parts = try Self.signed(claims, keyID: keyID, key: signer.key).split(separator: ".")
            let other = try Self.signed(JSONLine(), keyID: keyID, key: signer.key).split(separator: ".")
            token = (parts.prefix(2) + other.suffix(1)).joined(separator: ".")
        case .algorithmNone:
            token = Self.unsigned(claims, algorithm: "none", keyID: keyID) + "."
        case .sharedSecret:
            let unsigned = Self.unsigned(claims, algorithm: "HS256", keyID: keyID)
            let secret = Secret(utf8: try Self.publicNumbers(of: signer.key).modulus)
            token = "\(unsigned).\(Base64URL.encode(MessageKey(secret).authenticate(Array(unsigned.utf8))))"
        }
        return ["token": .string(token), "jti": .string(id), "kid": .string(keyID)]
    }

    /// Makes an ID token of Google's issuer that lives for an hour. The body's claims are added, or replace those.
    mutating func idToken(_ body: OrderedJSON, at now: Timestamp) throws(ControlError) -> OrderedJSON {
        let seconds = now.milliseconds / 1000
        let usual: [(name: String, value: OrderedJSON)] = [
            ("iss", "https://accounts.google.com"), ("iat", .integer(seconds)), ("exp", .integer(seconds + 3600)),
            ("email_verified", true),
        ]
        let given = try body.members(of: "the body")
        var claims = JSONLine()
        for (name, value) in usual.filter({ claim in !given.contains { $0.name == claim.name } }) + given {
            switch value {
            case .string(let text): claims.field(name, text)
            case .integer(let number): claims.field(name, number)
            case .bool(let flag): claims.field(name, flag)
            default: throw ControlError("\(name) must be a text, a whole number, or true or false")
            }
        }
        let signer = try signingKey()
        return ["id_token": .string(try Self.signed(claims, keyID: signer.id, key: signer.key, type: "JWT"))]
    }

    private static func claims(of specification: SecurityEventSpecification, id: String) -> JSONLine {
        var claims = JSONLine()
        claims.field("iss", specification.issuer)
        if specification.audience.count == 1, let audience = specification.audience.first {
            claims.field("aud", audience)
        } else {
            claims.array("aud") { list in for audience in specification.audience { list.element(audience) } }
        }
        claims.field("iat", specification.issuedAt)
        if let happenedAt = specification.happenedAt { claims.field("toe", happenedAt) }
        claims.field("jti", id)
        claims.object("events") { events in
            events.object(specification.type) { event in
                subject(of: specification, into: &event)
                if let reason = specification.reason { event.field("reason", reason) }
                if let state = specification.state { event.field("state", state) }
            }
        }
        return claims
    }

    private static func subject(of specification: SecurityEventSpecification, into event: inout JSONLine) {
        if specification.type.hasSuffix("/token-revoked"), let token = specification.refreshToken {
            event.object("subject") { subject in
                subject.field("subject_type", "oauth_token")
                subject.field("token_type", "refresh_token")
                subject.field(
                    "token_identifier_alg",
                    specification.namesByHash ? "hash_base64_sha512_sha512" : "prefix"
                )
                subject.field("token", specification.namesByHash ? doubleHash(of: token) : String(token.prefix(16)))
            }
        } else if let sub = specification.sub {
            event.object("subject") { subject in
                subject.field("subject_type", specification.subjectType)
                subject.field("iss", specification.issuer)
                subject.field("sub", sub)
                if specification.subjectType == "id_token_claims", let email = specification.email {
                    subject.field("email", email)
                }
            }
        }
    }

    /// Returns the padded standard Base64 of the hash of the hash.
    private static func doubleHash(of token: String) -> String {
        Base64.encode(Digest.sha512(Digest.sha512(Array(token.utf8))))
    }

    private static func signed(
        _ claims: JSONLine,
        keyID: String,
        key: RSAPrivateKey,
        type: String = "secevent+jwt"
    ) throws(ControlError) -> String {
        do throws(CryptoError) {
            return try key.signedToken(claims, keyID: keyID, type: type).reveal()
        } catch {
            throw ControlError("cannot sign the token: \(error)", status: 500)
        }
    }

    private static func unsigned(_ claims: JSONLine, algorithm: String, keyID: String) -> String {
        var header = JSONLine()
        header.field("alg", algorithm)
        header.field("kid", keyID)
        return "\(Base64URL.encode(header.bytes)).\(Base64URL.encode(claims.bytes))"
    }
}

/// The content of a security event token that a test requests, and how it is forged, if at all.
struct SecurityEventSpecification: Sendable {
    enum Forgery: String, CaseIterable {
        case none
        /// An unsigned token that says so.
        case algorithmNone = "alg_none"
        /// Signed by HMAC with the public key as its secret.
        case sharedSecret = "hs256"
        case badSignature = "bad_signature"
        /// Correctly signed by a key that is not in the key set.
        case unknownKey = "unknown_kid"
    }

    private static let prefixes = [
        "token-revoked": "https://schemas.openid.net/secevent/oauth/event-type/",
        "tokens-revoked": "https://schemas.openid.net/secevent/oauth/event-type/",
    ]
    private static let defaultPrefix = "https://schemas.openid.net/secevent/risc/event-type/"

    var type = ""
    var subjectType = "iss-sub"
    var sub: String?
    var email: String?
    var refreshToken: String?
    /// `true` if a refresh token is named by its double hash instead of its beginning.
    var namesByHash = false
    var reason: String?
    var state: String?
    var id: String?
    var issuer = SandboxSecurityEvents.issuer
    var audience: [String] = []
    var keyID: String?
    var issuedAt: Int64
    var happenedAt: Int64?
    var forgery = Forgery.none

    init(_ body: OrderedJSON, now: Timestamp) throws(ControlError) {
        issuedAt = now.milliseconds / 1000
        for (name, value) in try body.members(of: "the body") { try read(value, named: name) }
        guard !type.isEmpty else { throw ControlError("type is missing") }
        if !type.hasPrefix("https://") { type = (Self.prefixes[type] ?? Self.defaultPrefix) + type }
    }

    private mutating func read(_ value: OrderedJSON, named name: String) throws(ControlError) {
        switch name {
        case "type": type = try value.string(name)
        case "subject_type": subjectType = try value.string(name)
        case "sub": sub = try value.string(name)
        case "email": email = try value.string(name)
        case "refresh_token": refreshToken = try value.string(name)
        case "form": namesByHash = try Self.isHash(value)
        case "reason": reason = try value.string(name)
        case "state": state = try value.string(name)
        case "jti": id = try value.string(name)
        case "iss": issuer = try value.string(name)
        case "aud": audience = try Self.strings(in: value, named: name)
        case "kid": keyID = try value.string(name)
        case "iat": issuedAt = try value.integer(name)
        case "toe": happenedAt = try value.integer(name)
        case "forge":
            guard let forgery = Forgery(rawValue: try value.string(name)) else {
                throw ControlError("forge must be one of \(Forgery.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            self.forgery = forgery
        default: throw ControlError("unknown field \(name)")
        }
    }

    /// Reads one string or an array of strings.
    private static func strings(in value: OrderedJSON, named name: String) throws(ControlError) -> [String] {
        if let one = value.stringValue { return [one] }
        return try value.array(name).strings(name)
    }

    private static func isHash(_ value: OrderedJSON) throws(ControlError) -> Bool {
        switch try value.string("form") {
        case "prefix": false
        case "hash": true
        default: throw ControlError("form must be prefix or hash")
        }
    }
}
