import Base
import Crypto
import GoogleOAuth
import Storage

/// One attempt at a refresh and the response to it, as read: part of the rules' input, `DecisionContext`.
///
/// It is shared on its way from the committer to the log, because copies of it are costly.
package final class RefreshResult: Sendable {
    /// The claim under which the attempt was made.
    let attempt: RefreshAttempt
    let answer: Answer
    /// The client secret that the request contained.
    let clientSecret: ClientSecretFingerprint
    /// The HTTP status, for the log and for the failures in the client's health.
    let status: Int?
    /// Google's error text, for the log.
    let text: String?
    /// The time from the request to the end of the response, for the log and the limit of refreshes in flight.
    let latency: Duration?

    init(
        attempt: RefreshAttempt,
        answer: Answer,
        clientSecret: ClientSecretFingerprint = .none,
        status: Int? = nil,
        text: String? = nil,
        latency: Duration? = nil
    ) {
        self.attempt = attempt
        self.answer = answer
        self.clientSecret = clientSecret
        self.status = status
        self.text = text
        self.latency = latency
    }

    /// The answer, with its tokens sealed for the grant.
    enum Answer: Sendable {
        case granted(RefreshedTokens)
        /// A success with a fault, of any status. Its refresh token, if there is one, is kept regardless of the fault.
        case flawed(code: String, rotated: Grant.RefreshToken?)
        /// An answer without tokens or no answer, with the wait that the server asks for.
        case failed(RefreshFailure, retryAfter: Duration?)
        /// No request was sent, because the grant does not have a refresh token.
        case nothingToSend
        /// No request was sent, because the stored token cannot be opened.
        case unreadable(CryptoError)
        /// An attempt at a revocation. Its `failure` is `nil` if it succeeded.
        case revocation(failure: LookupError?)

        /// The refresh token that the answer brings to replace the one that was sent.
        var rotated: Grant.RefreshToken? {
            switch self {
            case .granted(let tokens): tokens.rotated
            case .flawed(_, let rotated): rotated
            case .failed, .nothingToSend, .unreadable, .revocation: nil
            }
        }

        /// `true` if the answer contains tokens: this might be their only copy.
        var containsTokens: Bool { if case .granted = self { true } else { rotated != nil } }

        /// `true` if the server might have processed the request, or might still be working on it.
        var isOutcomeUnknown: Bool {
            if case .failed(let failure, _) = self { failure.isOutcomeUnknown } else { false }
        }

        /// `true` if the worker did not send the request, so there is nothing to store.
        var isNotSent: Bool {
            if case .failed(.notSent, _) = self { true } else { false }
        }
    }

    /// A short code for logs.
    var code: String {
        switch answer {
        case .granted: "granted"
        case .flawed(let code, _): code
        case .failed(let failure, _): failure.code
        case .nothingToSend: "no_refresh_token"
        case .unreadable: "unreadable_token"
        case .revocation(nil): "revoked"
        case .revocation: "revocation_failed"
        }
    }

    /// The code of an answer that brought no token, or `nil` for any other, and if nothing was sent or waited for.
    var failureCode: String? {
        switch answer {
        case .granted, .failed(.notSent, _), .failed(.givenUp, _), .nothingToSend, .unreadable, .revocation: nil
        case .flawed, .failed: GrantReason(rawValue: code).rawValue
        }
    }
}

extension RefreshResult {
    /// Reads the response to a request that contained a refresh token, and seals its tokens. Lifetimes in the response
    /// count from `receivedAt`.
    convenience init(
        of refresh: InFlightRefresh,
        reading response: ParsedRefreshResponse,
        to sent: Secret,
        clientSecret: ClientSecretFingerprint,
        receivedAt: Timestamp,
        latency: Duration,
        sealingWith vault: TokenVault
    ) throws(CryptoError) {
        let id = refresh.grant.id
        // A server that returns the refresh token it was sent has not rotated it.
        let seal = { (rotated: Secret?, expiresAt: Timestamp?) throws(CryptoError) -> Grant.RefreshToken? in
            guard let rotated, rotated != sent else { return nil }
            return try vault.seal(refreshToken: rotated, for: id, expiresAt: expiresAt)
        }
        let answer: Answer
        switch response.verdict {
        case .granted(let tokens):
            let expiresAt = tokens.refreshTokenLifetime.map { receivedAt + $0 }
            answer = .granted(
                RefreshedTokens(
                    accessToken: Grant.AccessToken(
                        sealed: try vault.seal(accessToken: tokens.accessToken, for: id),
                        obtainedAt: receivedAt,
                        expiresAt: receivedAt + tokens.lifetime,
                        type: tokens.type
                    ),
                    rotated: try seal(tokens.rotated, expiresAt),
                    scope: tokens.scope,
                    refreshTokenExpiresAt: expiresAt,
                    digest: IssuedTokens.digest(of: tokens.accessToken)
                )
            )
        case .flawed(let code, let rotated): answer = .flawed(code: code, rotated: try seal(rotated, nil))
        case .failed(let failure): answer = .failed(failure, retryAfter: response.retryAfter)
        }
        self.init(
            attempt: refresh.attempt,
            answer: answer,
            clientSecret: clientSecret,
            status: response.status,
            text: response.text,
            latency: latency
        )
    }
}
