internal import Base
internal import Storage

/// The content of an access token whose signature and times have been checked.
struct AccessClaims: Hashable, Sendable {
    let userID: String
    /// The session family; `nil` for tokens that another program issued.
    let sessionID: SessionID?
    let email: String?
    let name: String?
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
        email = Self.text(claims["email"])
        name = Self.text(claims["name"])
        // An address that the user has only claimed must not be linked to the Google account that owns it.
        switch claims["email_verified"] {
        case nil, .null: emailIsVerified = nil
        case let value?: emailIsVerified = value == .bool(true) || value == .string("true")
        }
        guard let expiresAt = claims["exp"]?.timestamp else { throw .invalid }
        self.expiresAt = expiresAt
    }

    private static func text(_ value: JSONValue?) -> String? {
        value?.string.flatMap { (1...1024).contains($0.utf8.count) ? $0 : nil }
    }
}

extension JSONValue {
    /// A time in seconds since 1970, which may have a fraction (RFC 7519, section 2).
    var timestamp: Timestamp? {
        guard case .number(let text) = self, let seconds = Double(text), seconds.magnitude < 0x1p53 else { return nil }
        return Timestamp(secondsSince1970: Int64(seconds))
    }
}
