internal import Clocks
internal import JSON
internal import Store

/// What an access token says, once its signature and its times are known to be good.
struct AccessClaims: Hashable, Sendable {
    let userID: String
    /// The session family, in the tokens that are made here.
    let sessionID: SessionID?
    let email: String?
    /// What the backend knows of the address, where it says so.
    let emailIsVerified: Bool?
    let expiresAt: Timestamp

    init(_ claims: JSONValue) throws(AuthenticationRefusal) {
        // A token without a type is an access token; a refresh token never is one.
        guard claims["type"] == nil || claims["type"] == .string("access") else { throw .invalid }
        userID = try UserIdentifier(claims).text
        switch claims["sid"] {
        case nil: sessionID = nil
        case .string(let text):
            guard let id = SessionID(text: text) else { throw .invalid }
            sessionID = id
        default: throw .invalid
        }
        email = claims["email"]?.string.flatMap { (1...1024).contains($0.utf8.count) ? $0 : nil }
        // An address that its user has only claimed must not be linked to whoever it belongs to at Google.
        switch claims["email_verified"] {
        case nil, .null: emailIsVerified = nil
        case let claim?: emailIsVerified = claim == .bool(true) || claim == .string("true")
        }
        guard let expiresAt = claims["exp"]?.instant else { throw .invalid }
        self.expiresAt = expiresAt
    }
}

/// The id of a user, as the claims of a token name it.
struct UserIdentifier {
    static let greatestLength = 255

    let text: String

    /// Takes the user from `sub` or from `user_id`, where PayPulse's login puts it.
    init(_ claims: JSONValue) throws(AuthenticationRefusal) {
        let subject = try Self.identifier(claims["sub"])
        let user = try Self.identifier(claims["user_id"])
        // By bytes, as the store tells users apart.
        guard let userID = subject ?? user, user.map({ $0.utf8.elementsEqual(userID.utf8) }) ?? true else {
            throw .invalid
        }
        text = userID
    }

    /// A user's id; `nil` if there is none.
    ///
    /// A number is refused: `42`, `42.0` and `"42"` could be one user to us and two to the login that signed the token.
    private static func identifier(_ value: JSONValue?) throws(AuthenticationRefusal) -> String? {
        switch value {
        case nil, .null: return nil
        case .string(let text):
            guard isWellFormed(text) else { throw .invalid }
            return text
        default: throw .invalid
        }
    }

    static func isWellFormed(_ text: String) -> Bool {
        (1...greatestLength).contains(text.utf8.count)
            && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

extension JSONValue {
    /// A point of time in seconds since 1970, which may have a fraction (RFC 7519, section 2).
    var instant: Timestamp? {
        guard case .number(let text) = self, let seconds = Double(text), seconds.magnitude < 0x1p53 else { return nil }
        return Timestamp(secondsSince1970: Int64(seconds))
    }
}
