package import HTTPClient
package import Secrets

/// What an answer to a refresh means, as far as the answer alone can tell.
///
/// What becomes of the grant depends on more than one answer (is this a wave? did the grant ever work?): the engine's
/// rules decide that from the verdict.
package enum RefreshVerdict: Sendable {
    /// The grant is good, and here is its access token.
    case granted(TokenAnswer)
    /// A 200 that is wrong in some way: a fault that passes, but the refresh token in it, if any, must be stored.
    case flawed(code: String, rotated: Secret?)
    /// A 200 without JSON: a proxy, a captive portal or a broken endpoint answered.
    case notJSON
    /// `invalid_grant`, plain: the refresh token is dead.
    case invalidGrant
    /// Only the user can mend it, by signing in again.
    case signInRequired(code: String)
    /// An administrator or a policy blocks the grant, and may lift the block.
    case blocked(code: String)
    /// The client is at fault, whichever grant was asked for.
    case clientFault(code: String)
    /// The client may be at fault, or the token may be another client's.
    case clientOrForeignToken(code: String)
    /// Too many requests of this client.
    case throttled(code: String)
    /// A fault of the endpoint that passes.
    case endpointFault(code: String)
    /// No answer came, for a reason that passes; the request may have been carried out all the same.
    case noAnswer(code: String)
    /// The worker did not send the request.
    case notSent(code: String)
    /// The worker sent the request and stopped waiting; it may have been carried out all the same.
    case givenUp(code: String)
    /// Nobody knows what this means.
    case unknown(code: String)

    /// A short code for logs and for the grant's reason.
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

/// What a good answer to a refresh holds.
package struct TokenAnswer: Sendable {
    package var accessToken: Secret
    package var lifetime: Duration
    package var type: String
    /// The scopes of this access token, separated by spaces, where the answer names them.
    package var scope: String?
    /// The refresh token that replaces the one that was sent, where the server rotates.
    package var rotated: Secret?
    /// How long the refresh token has to live, where the answer says so.
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

/// What came back for a refresh, not read yet: reading is work that whoever brings it leaves to others.
package enum RefreshReply: Sendable {
    case response(HTTPResponse)
    /// No answer came.
    case failure(HTTPFailure)
    /// An endpoint that speaks no HTTP says at once what it means.
    case answer(RefreshAnswer)

    init(_ result: Result<HTTPResponse, HTTPFailure>) {
        self =
            switch result {
            case .success(let response): .response(response)
            case .failure(let failure): .failure(failure)
            }
    }
}

/// An answer to a refresh with its meaning.
package struct RefreshAnswer: Sendable {
    package var verdict: RefreshVerdict
    package var status: Int?
    /// How long the server asks to be left alone.
    package var retryAfter: Duration?
    /// The error as Google worded it: capped, and never the token that was sent.
    package var text: String?

    package init(verdict: RefreshVerdict, status: Int? = nil, retryAfter: Duration? = nil, text: String? = nil) {
        self.verdict = verdict
        self.status = status
        self.retryAfter = retryAfter
        self.text = text
    }
}
