import Base
import Crypto
import HTTPServer
import Storage

/// A request to the token endpoint: RFC 6749, section 6, or token exchange (RFC 8693, section 2.1).
///
/// The user's id, or a handle of the service, takes the place of the refresh token. A token exchange can also present
/// the user's own token of the app.
struct TokenEndpointRequest: Sendable {
    enum GrantType: String, CaseIterable, Sendable {
        case refreshToken = "refresh_token"
        case tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
    }

    static let accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
    private static let refreshTokenType = "urn:ietf:params:oauth:token-type:refresh_token"
    private static let jwtType = "urn:ietf:params:oauth:token-type:jwt"

    /// The life that a vended token has at least, if Google can be reached.
    ///
    /// google-auth replaces a token 225 seconds before its end. With a shorter token it would send a request before
    /// each call.
    static let minimumLife: Duration = .seconds(300)

    let grantType: GrantType
    /// The user's id, also from a handle, or a token of the app, which is not verified yet.
    let subject: String
    let presentsToken: Bool
    let demands: TokenVendingRequest

    init(_ form: TokenEndpointForm, from service: Service) throws(ServiceError) {
        guard let name = form["grant_type"] else { throw .invalidRequest("grant_type is missing") }
        guard let grantType = GrantType(rawValue: name) else { throw .unsupportedGrantType }
        self.grantType = grantType
        let subject: String
        switch grantType {
        case .refreshToken:
            subject = try Self.required("refresh_token", in: form)
            presentsToken = false
        case .tokenExchange:
            try Self.checkExchange(form)
            subject = try Self.required("subject_token", in: form)
            presentsToken = form["subject_token_type"] != Self.refreshTokenType
        }
        var connection: ConnectionID?
        if presentsToken {
            self.subject = subject
        } else {
            let named = try Self.user(subject, for: service)
            self.subject = named.userID
            connection = named.connection
        }
        demands = try TokenVendingRequest(
            scope: form["scope"],
            minimumLife: Self.minimumLife,
            connection: try Self.connection(in: form, ofHandle: connection)
        )
    }

    private static func required(_ parameter: String, in form: TokenEndpointForm) throws(ServiceError) -> String {
        guard let subject = form[parameter] else {
            throw .invalidRequest("\(parameter) is missing: the id of a user, a handle, or a user's token")
        }
        return subject
    }

    private static func checkExchange(_ form: TokenEndpointForm) throws(ServiceError) {
        guard [refreshTokenType, accessTokenType, jwtType].contains(form["subject_token_type"]) else {
            throw .invalidRequest("subject_token_type must be \(refreshTokenType), \(accessTokenType) or \(jwtType)")
        }
        guard [nil, accessTokenType].contains(form["requested_token_type"]) else {
            throw .invalidRequest("requested_token_type must be \(accessTokenType)")
        }
        guard form["actor_token"] == nil, form["actor_token_type"] == nil else {
            throw .invalidRequest("actor tokens are not supported")
        }
        guard form["audience"] == nil, form["resource"] == nil else { throw .invalidTarget }
    }

    /// Returns the connection that the request or its handle names. A handle for one connection gives no other.
    private static func connection(
        in form: TokenEndpointForm,
        ofHandle handle: ConnectionID?
    ) throws(ServiceError) -> ConnectionID {
        guard let text = form["connection"] else { return handle ?? .default }
        guard let connection = ConnectionID(text) else {
            throw .invalidRequest("connection must be the id of a connection")
        }
        guard handle == nil || handle == connection else {
            throw .invalidRequest("the handle names another connection than the parameter connection")
        }
        return connection
    }

    /// Returns the user of an id or a handle.
    ///
    /// A handle that does not open is not answered like a user who is gone: the service's credential was replaced, and
    /// the user is as before.
    private static func user(_ subject: String, for service: Service) throws(ServiceError) -> NamedUser {
        guard subject.hasPrefix(Service.handlePrefix) else { return NamedUser(userID: subject) }
        do {
            if let user = try service.user(ofHandle: subject) { return user }
        } catch {
            // libcrypto failed, and the handle might be good: the library must try again.
            throw ServiceError(causedBy: error)
        }
        throw .invalidRequest("the handle was made for another service, or with a former credential")
    }
}
