package import Crypto

/// The meaning of an answer to a refresh, as far as this one answer shows it.
///
/// The decision about the grant depends on more than one answer (is this a wave? was the grant ever proven?): the
/// engine's rules make it from the verdict.
package enum RefreshVerdict: Sendable {
    /// The grant is good.
    case granted(TokenResponse)
    /// An answer that is incomplete or contradicts itself: a 200 whose access token cannot be used, or new tokens with
    /// the status of an error. The fault is temporary, but the refresh token in the answer, if any, must be stored.
    case flawed(code: String, rotated: Secret?)
    case failed(RefreshFailure)

    /// A short code, for logs and for the grant's reason.
    package var code: String {
        switch self {
        case .granted: "granted"
        case .flawed(let code, _): code
        case .failed(let failure): failure.code
        }
    }
}

/// The meaning of an answer without tokens, or of a request without an answer.
package enum RefreshFailure: Sendable {
    /// A 200 without JSON: it came from a proxy, a captive portal or a broken endpoint.
    case notJSON
    /// A plain `invalid_grant`: the refresh token is dead.
    case invalidGrant
    /// Only the user can repair the grant, by signing in again.
    case signInRequired(code: String)
    /// An administrator or a policy blocks the grant, and can lift the block.
    case blocked(code: String)
    /// The client is at fault, not the grant.
    case clientFault(code: String)
    /// The client might be at fault, or the token might be a foreign token.
    case clientOrForeignToken(code: String)
    /// Google cannot verify that the request comes from the app: it wants a proof that only the app on a phone has.
    case appNotAuthentic
    /// The endpoint does not accept the proof for a bound token, or answers `invalid_grant` to it while this machine's
    /// clock is wrong. Or it wants a proof for a token that the worker has not bound.
    case proofRefused(code: String)
    /// The client sends too many requests.
    case throttled(code: String)
    /// A temporary fault of the endpoint.
    case endpointFault(code: String)
    /// No answer came, for a temporary reason. `outcomeUnknown` is `true` if the request might have been processed, or
    /// might still be.
    case noAnswer(code: String, outcomeUnknown: Bool = true)
    /// The worker did not send the request.
    case notSent(code: String)
    /// The worker sent the request and stopped waiting. The request might have been processed.
    case givenUp(code: String)
    /// An answer with an unknown meaning.
    case unknown(code: String)

    /// `true` if the server might have processed the request, or might still be working on it.
    package var isOutcomeUnknown: Bool {
        switch self {
        case .noAnswer(_, let outcomeUnknown): outcomeUnknown
        case .givenUp: true
        case .notJSON, .invalidGrant, .signInRequired, .blocked, .clientFault, .clientOrForeignToken, .appNotAuthentic,
            .proofRefused, .throttled, .endpointFault, .notSent, .unknown:
            false
        }
    }

    /// A short code, for logs and for the grant's reason.
    package var code: String {
        switch self {
        case .notJSON: "not_json"
        case .invalidGrant: "invalid_grant"
        case .appNotAuthentic: "app_not_authentic"
        case .signInRequired(let code), .blocked(let code), .clientFault(let code), .clientOrForeignToken(let code),
            .proofRefused(let code), .throttled(let code), .endpointFault(let code), .noAnswer(let code, _),
            .notSent(let code),
            .givenUp(let code), .unknown(let code):
            code
        }
    }
}
