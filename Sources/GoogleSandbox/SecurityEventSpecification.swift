internal import Base

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
        for (name, value) in try body.members(of: "the body") { try read(name, value) }
        guard !type.isEmpty else { throw ControlError("type is missing") }
        if !type.hasPrefix("https://") { type = (Self.prefixes[type] ?? Self.defaultPrefix) + type }
    }

    private mutating func read(_ name: String, _ value: OrderedJSON) throws(ControlError) {
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
        case "aud": audience = try Self.strings(name, value)
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
    private static func strings(_ name: String, _ value: OrderedJSON) throws(ControlError) -> [String] {
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
