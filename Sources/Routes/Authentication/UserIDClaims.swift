internal import Base

/// The id of a user in the claims of a token.
extension JSONValue {
    /// Returns the user from `sub`, or from `user_id`, which PayPulse's login uses.
    func userID() throws(AppError) -> String {
        let subject = try Self.userID(self["sub"])
        let user = try Self.userID(self["user_id"])
        guard let userID = subject ?? user else { throw .invalidToken }
        // Compared by bytes, as the store compares ids.
        if let user, !user.utf8.elementsEqual(userID.utf8) { throw .invalidToken }
        return userID
    }

    /// Returns the user from the configured claim of a token of the shared secret.
    func userID(of claim: String) throws(AppError) -> String {
        claim == AppTokens.usualUserClaim ? try userID() : try userID(in: claim)
    }

    func userID(in claim: String) throws(AppError) -> String {
        guard let userID = try Self.userID(self[claim]) else { throw .invalidToken }
        // An address that the user has only claimed names nobody.
        if claim == "email", emailIsVerified != true { throw .invalidToken }
        return userID
    }

    /// What the issuer says about the address, or `nil` if it says nothing. An address that the user has only claimed
    /// must not be linked to the Google account that owns it.
    var emailIsVerified: Bool? {
        switch self["email_verified"] {
        case nil, .null: nil
        case let value?: value == .bool(true) || value == .string("true")
        }
    }

    /// Returns a user's id, or `nil` if there is none.
    ///
    /// A number is refused: `42`, `42.0` and `"42"` could be one user for the worker, and two for the login that signed
    /// the token.
    private static func userID(_ value: JSONValue?) throws(AppError) -> String? {
        if value == nil || value == .null { return nil }
        guard let text = value?.string, text.isUserID else { throw .invalidToken }
        return text
    }
}
