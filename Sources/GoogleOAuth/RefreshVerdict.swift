package import HTTPClient
package import Secrets

/// The meaning of an answer to a refresh, as far as this one answer shows it.
///
/// The decision about the grant depends on more than one answer (is this a wave? was the grant ever proven?): the
/// engine's rules make it from the verdict.
package enum RefreshVerdict: Sendable {
    /// The grant is good; the value holds its access token.
    case granted(TokenResponse)
    /// A 200 that is wrong in some way. The fault is temporary, but the refresh token in the answer, if any, must be
    /// stored.
    case flawed(code: String, rotated: Secret?)
    /// A 200 without JSON: it came from a proxy, a captive portal or a broken endpoint.
    case notJSON
    /// A plain `invalid_grant`: the refresh token is dead.
    case invalidGrant
    /// Only the user can repair the grant, by signing in again.
    case signInRequired(code: String)
    /// An administrator or a policy blocks the grant, and may lift the block.
    case blocked(code: String)
    /// The client is at fault, not the grant.
    case clientFault(code: String)
    /// The client may be at fault, or the token may be a foreign token.
    case clientOrForeignToken(code: String)
    /// The client sends too many requests.
    case throttled(code: String)
    /// A temporary fault of the endpoint.
    case endpointFault(code: String)
    /// No answer came, for a temporary reason. The request may have been processed.
    case noAnswer(code: String)
    /// The worker did not send the request.
    case notSent(code: String)
    /// The worker sent the request and stopped waiting. The request may have been processed.
    case givenUp(code: String)
    /// An answer with an unknown meaning.
    case unknown(code: String)

    /// A short code, for logs and for the grant's reason.
    package var code: String {
        switch self {
        case .granted: "granted"
        case .notJSON: "not_json"
        case .invalidGrant: "invalid_grant"
        case .flawed(let code, _), .signInRequired(let code), .blocked(let code), .clientFault(let code),
            .clientOrForeignToken(let code), .throttled(let code), .endpointFault(let code), .noAnswer(let code),
            .notSent(let code), .givenUp(let code), .unknown(let code):
            code
        }
    }
}

/// The content of a good answer to a refresh.
package struct TokenResponse: Sendable {
    package var accessToken: Secret
    package var lifetime: Duration
    package var type: String
    /// The scopes of this access token, separated by spaces, if the answer names them.
    package var scope: String?
    /// The refresh token that replaces the one that was sent, if the server rotates.
    package var rotated: Secret?
    /// The remaining lifetime of the refresh token, if the answer gives it.
    package var refreshTokenLifetime: Duration?
    /// The ID token that Google adds if the grant has the scope `openid`.
    package var idToken: Secret?

    package init(
        accessToken: Secret,
        lifetime: Duration,
        type: String,
        scope: String? = nil,
        rotated: Secret? = nil,
        refreshTokenLifetime: Duration? = nil,
        idToken: Secret? = nil
    ) {
        self.accessToken = accessToken
        self.lifetime = lifetime
        self.type = type
        self.scope = scope
        self.rotated = rotated
        self.refreshTokenLifetime = refreshTokenLifetime
        self.idToken = idToken
    }
}

/// An unparsed reply to a refresh.
///
/// Parsing takes time, so the thread that receives the reply leaves it to others.
package enum RawRefreshResponse: Sendable {
    case response(HTTPResponse)
    /// The request failed without a complete answer.
    case failure(HTTPFailure)
    /// The verdict of an endpoint that does not use HTTP, such as a fake one in a test.
    case answer(ParsedRefreshResponse)

    init(_ result: Result<HTTPResponse, HTTPFailure>) {
        self =
            switch result {
            case .success(let response): .response(response)
            case .failure(let failure): .failure(failure)
            }
    }
}

/// The verdict on an answer to a refresh, with the other data of the answer.
package struct ParsedRefreshResponse: Sendable {
    package var verdict: RefreshVerdict
    package var status: Int?
    /// The delay that the server asks for.
    package var retryAfter: Duration?
    /// Google's error text, shortened; it never contains the token that was sent.
    package var text: String?

    package init(verdict: RefreshVerdict, status: Int? = nil, retryAfter: Duration? = nil, text: String? = nil) {
        self.verdict = verdict
        self.status = status
        self.retryAfter = retryAfter
        self.text = text
    }
}
