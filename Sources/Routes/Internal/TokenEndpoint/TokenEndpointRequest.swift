import Scheduler

/// A request to the token endpoint: RFC 6749, section 6, or token exchange (RFC 8693, section 2.1).
///
/// The user's id, or a handle of the service, takes the place of the refresh token.
struct TokenEndpointRequest: Sendable {
    enum GrantType: String, Sendable {
        case refreshToken = "refresh_token"
        case tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
    }

    static let accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
    private static let refreshTokenType = "urn:ietf:params:oauth:token-type:refresh_token"

    /// The life that a vended token has at least, if Google can be reached.
    ///
    /// google-auth replaces a token 225 seconds before its end. With a shorter token it would send a request before
    /// each call.
    private static let minimumLife: Duration = .seconds(300)

    let grantType: GrantType
    let userID: String
    let demands: TokenVendingRequest

    init(_ form: TokenEndpointForm, from service: Service) throws(VendingError) {
        guard let name = form["grant_type"] else { throw .invalidRequest("grant_type is missing") }
        guard let grantType = GrantType(rawValue: name) else { throw .unsupportedGrantType }
        self.grantType = grantType
        let subject =
            switch grantType {
            case .refreshToken: form["refresh_token"]
            case .tokenExchange: try Self.subjectToken(form)
            }
        guard let subject else {
            let parameter = grantType == .refreshToken ? "refresh_token" : "subject_token"
            throw .invalidRequest("\(parameter) must be the id of a user, or a handle")
        }
        userID = try Self.userID(subject, for: service)
        demands = try TokenVendingRequest(scope: form["scope"], minimumLife: Self.minimumLife)
    }

    private static func subjectToken(_ form: TokenEndpointForm) throws(VendingError) -> String? {
        guard form["subject_token_type"] == refreshTokenType else {
            throw .invalidRequest("subject_token_type must be \(refreshTokenType)")
        }
        guard [nil, accessTokenType].contains(form["requested_token_type"]) else {
            throw .invalidRequest("requested_token_type must be \(accessTokenType)")
        }
        guard form["actor_token"] == nil, form["actor_token_type"] == nil else {
            throw .invalidRequest("actor tokens are not supported")
        }
        guard form["audience"] == nil, form["resource"] == nil else { throw .invalidTarget }
        return form["subject_token"]
    }

    /// Returns the user of an id or a handle.
    ///
    /// A handle that does not open is not answered like a user who is gone: the service's credential was replaced, and
    /// the user is as before.
    private static func userID(_ subject: String, for service: Service) throws(VendingError) -> String {
        guard subject.hasPrefix(UserHandle.prefix) else { return subject }
        do {
            if let userID = try UserHandle.userID(in: subject, of: service) { return userID }
        } catch {
            // libcrypto failed, and the handle may be good: the library must try again.
            throw VendingError(error)
        }
        throw .invalidRequest("the handle was made for another service, or with a former credential")
    }
}
