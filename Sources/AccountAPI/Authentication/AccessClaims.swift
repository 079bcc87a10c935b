internal import Clocks
internal import JSON
internal import Store

/// The content of an access token whose signature and times have been checked.
struct AccessClaims: Hashable, Sendable {
    let userID: String
    /// The session family; `nil` for tokens that were not made here.
    let sessionID: SessionID?
    let email: String?
    /// The backend's statement about the address, if the token has one.
    let emailIsVerified: Bool?
    let expiresAt: Timestamp

    init(_ claims: JSONValue) throws(AuthenticationRefusal) {
        // A token without a type is an access token; a refresh token always has one.
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
        // An address that the user has only claimed must not be linked to the Google account that owns it.
        switch claims["email_verified"] {
        case nil, .null: emailIsVerified = nil
        case let claim?: emailIsVerified = claim == .bool(true) || claim == .string("true")
        }
        guard let expiresAt = claims["exp"]?.instant else { throw .invalid }
        self.expiresAt = expiresAt
    }
}

/// The id of a user in the claims of a token.
struct UserIdentifier {
    static let greatestLength = 255

    let text: String

    /// Reads the user from `sub`, or from `user_id`, which PayPulse's login uses.
    init(_ claims: JSONValue) throws(AuthenticationRefusal) {
        let subject = try Self.identifier(claims["sub"])
        let user = try Self.identifier(claims["user_id"])
        // Compared by bytes, as the store compares ids.
        guard let userID = subject ?? user, user.map({ $0.utf8.elementsEqual(userID.utf8) }) ?? true else {
            throw .invalid
        }
        text = userID
    }

    /// Returns a user's id; `nil` if there is none.
    ///
    /// A number is refused: `42`, `42.0` and `"42"` could be one user here and two for the login that signed the token.
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
    /// A time in seconds since 1970, which may have a fraction (RFC 7519, section 2).
    var instant: Timestamp? {
        guard case .number(let text) = self, let seconds = Double(text), seconds.magnitude < 0x1p53 else { return nil }
        return Timestamp(secondsSince1970: Int64(seconds))
    }
}
