import Base
import Crypto
import HTTPServer
import Scheduler
import Storage

/// The token endpoint for OAuth libraries: the tokens of ``TokenVendingHandler``, requested in a standard form.
///
/// No library names the token that it replaces, so the endpoint cannot know that Google has rejected one early. A
/// service that needs another asks `POST /v1/grants/{user_id}/token/refresh`.
extension TokenVendingHandler {
    static let tokenEndpointPath = "/oauth2/token"

    /// Returns a token that lives long enough for a library, or an error that it understands.
    func tokenEndpointResponse(to request: ServerRequest) async -> ServerResponse {
        let start = time.sinceBoot
        let form: TokenEndpointForm
        let login: (name: String, credential: String)?
        do throws(APIError) {
            form = try TokenEndpointForm(request)
            login = try form.login(request)
        } catch {
            return refused(error, since: start).oauthResponse
        }
        guard let login, let service = services.service(named: login.name, presenting: login.credential) else {
            return refusedStranger(request, since: start).oauthResponse
        }
        var grantType: TokenEndpointRequest.GrantType?
        let result = await vend(to: service, forced: false, since: start) { audit in
            let parsed = try TokenEndpointRequest(form, from: service)
            grantType = parsed.grantType
            audit.isPresent = parsed.presentsToken
            let userID = parsed.presentsToken ? try await presentUser(parsed.subject) : parsed.subject
            do {
                return try await token(of: userID, parsed.demands, for: service, &audit)
            } catch {
                throw try await orDoubt(APIError(internally: error), about: userID)
            }
        }
        do throws(APIError) {
            // RFC 6749, section 5.1, and RFC 8693, section 2.2.1. The scope is every scope that the user has granted,
            // or requests-oauthlib refuses the token.
            let token = try result.get()
            return .object(headers: APIError.oauthHeaders) { line in
                line.field("access_token", token.accessToken.reveal())
                if grantType == .tokenExchange { line.field("issued_token_type", TokenEndpointRequest.accessTokenType) }
                line.field("token_type", token.type)
                line.field("expires_in", token.secondsLeft(at: time.now))
                if !token.scope.isEmpty { line.field("scope", token.scope) }
            }
        } catch {
            return error.oauthResponse
        }
    }

    /// Returns the user of an app's token that a service presents.
    private func presentUser(_ token: String) async throws -> String {
        do {
            return try await appTokens.caller(presenting: token).userID
        } catch let error as APIError {
            guard error.status == 503 else {
                // RFC 8693, section 2.2.2. Not invalid_grant: the user's connection to Google is as before.
                throw APIError.invalidRequest("the subject_token is refused: \(error.message)")
            }
            var unavailable = APIError.temporary("keys_unavailable", error.message)
            unavailable.retryAfter = error.retryAfter
            throw unavailable
        }
    }

    /// Returns the error for now, instead of the end of a grant that the worker itself can still undo.
    ///
    /// Libraries delete the connection after `invalid_grant`, so it must be final.
    private func orDoubt(_ error: APIError, about userID: String) async throws -> APIError {
        guard GrantState(rawValue: error.code)?.endsRefreshes == true, let reason = error.reason,
            let wait = try await provider.recallTimeLeft(ofUser: userID)
        else { return error }
        return .unavailable(reason: GrantReason(rawValue: reason).unconfirmed.rawValue, wait: wait)
    }
}

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
    private static let minimumLife: Duration = .seconds(300)

    let grantType: GrantType
    /// The user's id, also from a handle, or a token of the app, which is not verified yet.
    let subject: String
    let presentsToken: Bool
    let demands: TokenVendingRequest

    init(_ form: TokenEndpointForm, from service: Service) throws(APIError) {
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
            throw .invalidRequest("\(parameter) is missing: the id of a user, a handle, or a user's token")
        }
        presentsToken = grantType == .tokenExchange && form["subject_token_type"] != Self.refreshTokenType
        self.subject = presentsToken ? subject : try Self.userID(subject, for: service)
        demands = try TokenVendingRequest(scope: form["scope"], minimumLife: Self.minimumLife)
    }

    private static func subjectToken(_ form: TokenEndpointForm) throws(APIError) -> String? {
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
        return form["subject_token"]
    }

    /// Returns the user of an id or a handle.
    ///
    /// A handle that does not open is not answered like a user who is gone: the service's credential was replaced, and
    /// the user is as before.
    private static func userID(_ subject: String, for service: Service) throws(APIError) -> String {
        guard subject.hasPrefix(Service.handlePrefix) else { return subject }
        do {
            if let userID = try service.userID(ofHandle: subject) { return userID }
        } catch {
            // libcrypto failed, and the handle might be good: the library must try again.
            throw APIError(internally: error)
        }
        throw .invalidRequest("the handle was made for another service, or with a former credential")
    }
}

/// The parameters of a request to the token endpoint.
///
/// Each can be sent at most once. One without a value counts as absent, and unknown ones are ignored (RFC 6749, section
/// 3.2).
struct TokenEndpointForm: Sendable {
    private static let contentType = "application/x-www-form-urlencoded"
    private static let maximumFields = 32
    private static let maximumLength = 4096
    /// The parameters of RFC 8693 that can repeat.
    private static let repeatable: Set<String> = ["audience", "resource"]
    private static let known: Set<String> = repeatable.union([
        "grant_type", "refresh_token", "scope", "client_id", "client_secret", "subject_token", "subject_token_type",
        "requested_token_type", "actor_token", "actor_token_type",
    ])

    private let values: [String: String]

    init(_ request: ServerRequest) throws(APIError) {
        guard request.query.isEmpty else { throw .invalidRequest("parameters belong in the body, not in the URL") }
        guard request.mediaType == Self.contentType else {
            throw .invalidRequest("the Content-Type must be \(Self.contentType)")
        }
        // Before the fields are decoded, so that a body of separators costs nothing.
        guard request.body.count(where: { $0 == UInt8(ascii: "&") }) < Self.maximumFields else {
            throw .invalidRequest("the body must not have more than \(Self.maximumFields) parameters")
        }
        var values: [String: String] = [:]
        for (name, value) in request.form where Self.known.contains(name) {
            let limit = name == "subject_token" ? TokenSigner.maximumTokenLength : Self.maximumLength
            guard Self.isText(value, limit: limit) else {
                throw .invalidRequest("\(name) is too long, is not UTF-8, or contains a control character")
            }
            let isFirst = values.updateValue(value, forKey: name) == nil
            guard isFirst || Self.repeatable.contains(name) else {
                throw .invalidRequest("\(name) must not be sent twice")
            }
        }
        self.values = values
    }

    subscript(name: String) -> String? {
        values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Accepts text whose decoding lost nothing: invalid UTF-8 is decoded as U+FFFD, and would name another user.
    private static func isText(_ text: String, limit: Int) -> Bool {
        text.utf8.count <= limit
            && !text.unicodeScalars.contains { $0 == "\u{fffd}" || $0.properties.generalCategory == .control }
    }
}

extension TokenEndpointForm {
    /// Returns the name and the credential with which a service authenticates itself, from the form or from the
    /// `Authorization` header (RFC 6749, section 2.3.1), or `nil` if they are not complete.
    ///
    /// A request with both is refused, because choosing one would be arbitrary.
    func login(_ request: ServerRequest) throws(APIError) -> (name: String, credential: String)? {
        let clientID = self["client_id"]
        let secret = self["client_secret"]
        guard request.header("Authorization") != nil else {
            guard let clientID, let secret else { return nil }
            return (clientID, secret)
        }
        guard secret == nil else {
            throw .invalidRequest("authenticate by HTTP Basic or by client_secret, not by both")
        }
        guard case .present(let name, let password) = BasicCredentials(of: request) else { return nil }
        guard clientID.map({ $0.utf8.elementsEqual(name.utf8) }) ?? true else {
            throw .invalidRequest("client_id differs from the name in the Authorization header")
        }
        return (name, password)
    }
}
