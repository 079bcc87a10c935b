import Base
import Crypto
import GoogleOAuth
import Storage

/// What a refresh has brought, with its tokens sealed: the rules decide about it, and a spill file stores it.
///
/// It is a class, because copies of it are costly.
package final class RefreshResult: Sendable {
    /// The claim under which the request was sent.
    let claim: RefreshClaim
    let answer: Answer
    /// The fingerprint of the client secret that the request contained.
    let secretFingerprint: ClientSecretFingerprint
    /// The HTTP status, for the log and for the failures in the client's health.
    let status: Int?
    /// Google's error text, for the log.
    let text: String?
    /// The time from the request to the end of the response, for the log and the limit of refreshes in flight.
    let latency: Duration?
    /// `true` if the worker did not send the request, so there is nothing to store. It is a stored flag, because asking
    /// the answer copies its tokens.
    let isNotSent: Bool

    init(
        claim: RefreshClaim,
        answer: Answer,
        secretFingerprint: ClientSecretFingerprint = .none,
        status: Int? = nil,
        text: String? = nil,
        latency: Duration? = nil
    ) {
        self.claim = claim
        self.answer = answer
        self.secretFingerprint = secretFingerprint
        self.status = status
        self.text = text
        self.latency = latency
        isNotSent = if case .failed(.notSent, _) = answer { true } else { false }
    }

    /// The answer, with its tokens sealed for the grant.
    enum Answer: Sendable {
        case granted(RefreshedTokens)
        /// A success with a fault, of any status. Its refresh token, if there is one, is kept regardless of the fault.
        case flawed(code: String, rotated: Grant.RefreshToken?)
        /// An answer without tokens or no answer, with the wait that the server asks for.
        case failed(RefreshFailure, retryAfter: Duration?)
        /// No request was sent, because the grant does not have a refresh token.
        case withoutRefreshToken
        /// No request was sent, because the stored token cannot be opened.
        case unreadable(CryptoError)
        /// An attempt at a revocation. Its `failure` is `nil` if it succeeded.
        case revocation(failure: LookupError?)

        /// The refresh token that the answer brings to replace the one that was sent.
        var rotated: Grant.RefreshToken? {
            switch self {
            case .granted(let tokens): tokens.rotated
            case .flawed(_, let rotated): rotated
            case .failed, .withoutRefreshToken, .unreadable, .revocation: nil
            }
        }

        /// `true` if the answer contains tokens: this might be their only copy.
        var containsTokens: Bool { if case .granted = self { true } else { rotated != nil } }

        /// `true` if the server might have processed the request, or might still be working on it.
        var isOutcomeUnknown: Bool {
            if case .failed(let failure, _) = self { failure.isOutcomeUnknown } else { false }
        }
    }

    /// A short code for logs.
    var code: String {
        switch answer {
        case .granted: "granted"
        case .flawed(let code, _): code
        case .failed(let failure, _): failure.code
        case .withoutRefreshToken: "no_refresh_token"
        case .unreadable: "unreadable_token"
        case .revocation(nil): "revoked"
        case .revocation: "revocation_failed"
        }
    }

    /// The code of an answer that brought no token, or `nil` for any other, and if nothing was sent or waited for.
    var failureCode: String? {
        switch answer {
        case .granted, .failed(.notSent, _), .failed(.givenUp, _), .withoutRefreshToken, .unreadable, .revocation: nil
        case .flawed, .failed: GrantReason(rawValue: code).rawValue
        }
    }
}

extension RefreshResult {
    /// Reads the response to a request, and seals its tokens.
    convenience init(
        of claim: RefreshClaim,
        reading received: ReceivedResponse,
        sealingWith vault: TokenVault
    ) throws(CryptoError) {
        let request = received.request
        let parsed = ParsedRefreshResponse.reading(received.response, sent: request.secrets)
        let answer: Answer
        switch parsed.verdict {
        case .granted(let tokens):
            let seal = TokenSeal(vault: vault, claim: claim, sent: request.token)
            answer = .granted(try seal.seal(tokens, receivedAt: received.receivedAt))
        case .flawed(let code, let rotated):
            let seal = TokenSeal(vault: vault, claim: claim, sent: request.token)
            answer = .flawed(code: code, rotated: try seal.seal(rotated: rotated, expiresAt: nil))
        case .failed(let failure): answer = .failed(failure, retryAfter: parsed.retryAfter)
        }
        self.init(
            claim: claim,
            answer: answer,
            secretFingerprint: request.clientSecret?.fingerprint ?? .none,
            status: parsed.status,
            text: parsed.text,
            latency: received.latency
        )
    }
}

/// Seals the tokens of one response.
private struct TokenSeal {
    let vault: TokenVault
    let grant: GrantID
    /// The key that the request has proved, to which the successor of its token is bound too.
    let bindingKeyID: KeyID?
    /// The refresh token that the request contained.
    let sent: Secret

    init(vault: TokenVault, claim: RefreshClaim, sent: Secret) {
        self.vault = vault
        grant = claim.grant
        bindingKeyID = claim.refreshToken?.bindingKeyID
        self.sent = sent
    }

    /// Lifetimes in the response count from `receivedAt`.
    func seal(_ tokens: TokenResponse, receivedAt: Timestamp) throws(CryptoError) -> RefreshedTokens {
        var refreshTokenExpiresAt: Timestamp?
        if let lifetime = tokens.refreshTokenLifetime { refreshTokenExpiresAt = receivedAt + lifetime }
        return RefreshedTokens(
            accessToken: Grant.AccessToken(
                sealed: try vault.seal(accessToken: tokens.accessToken, for: grant),
                obtainedAt: receivedAt,
                expiresAt: receivedAt + tokens.lifetime,
                type: tokens.type
            ),
            rotated: try seal(rotated: tokens.rotated, expiresAt: refreshTokenExpiresAt),
            scope: tokens.scope,
            refreshTokenExpiresAt: refreshTokenExpiresAt,
            refreshTokenTimeout: tokens.refreshTokenTimeout,
            digest: IssuedTokens.digest(of: tokens.accessToken)
        )
    }

    /// A server that returns the refresh token it was sent has not rotated it.
    func seal(rotated: Secret?, expiresAt: Timestamp?) throws(CryptoError) -> Grant.RefreshToken? {
        guard let rotated, rotated != sent else { return nil }
        return try vault.seal(refreshToken: rotated, for: grant, boundTo: bindingKeyID, expiresAt: expiresAt)
    }
}
