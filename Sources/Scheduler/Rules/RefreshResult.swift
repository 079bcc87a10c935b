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
    /// The HTTP status, the error text and the latency, for the log.
    let status: Int?
    let text: String?
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
        /// A faulty 200; a refresh token in it is kept regardless of the fault.
        case flawed(code: String, rotated: Grant.RefreshToken?)
        /// Any other verdict, with the wait that the server asks for.
        case failed(RefreshVerdict, retryAfter: Duration?)
        /// No request was sent, because the grant does not have a refresh token.
        case nothingToSend
        /// No request was sent, because the stored token cannot be opened.
        case unreadable(SealError)
        /// An attempt at a revocation; `failure` is `nil` if it succeeded.
        case revocation(failure: AccountLookupFailure?)

        /// `true` if the answer contains tokens: this may be their only copy.
        var containsTokens: Bool {
            switch self {
            case .granted: true
            case .flawed(_, let rotated): rotated != nil
            case .failed, .nothingToSend, .unreadable, .revocation: false
            }
        }

        /// `true` if the server might have processed the request, or might still be working on it.
        var isOutcomeUnknown: Bool {
            guard case .failed(let verdict, _) = self else { return false }
            return verdict.isOutcomeUnknown
        }

        /// `true` if the worker did not send the request, so there is nothing to store.
        var isNotSent: Bool {
            guard case .failed(.notSent, _) = self else { return false }
            return true
        }
    }

    /// The refresh token that the answer brings to replace the one that was sent.
    var rotated: Grant.RefreshToken? {
        switch answer {
        case .granted(let tokens): tokens.rotated
        case .flawed(_, let rotated): rotated
        case .failed, .nothingToSend, .unreadable, .revocation: nil
        }
    }

    /// A short code for logs.
    var code: String {
        switch answer {
        case .granted: "granted"
        case .flawed(let code, _): code
        case .failed(let verdict, _): verdict.code
        case .nothingToSend: "no_refresh_token"
        case .unreadable: "unreadable_token"
        case .revocation(nil): "revoked"
        case .revocation: "revocation_failed"
        }
    }
}

/// A claim on a grant, with the grant's state at the time of the claim.
struct RefreshAttempt: Hashable, Sendable {
    var grant: GrantID
    var clientID: String
    var claim: Int64
    /// The fence: the result is about this version of the refresh token.
    var generation: Int64
    /// The grant's `lastAttemptAt` at the claim; a different value means a change while the request was in flight.
    var lastAttemptAt: Timestamp?

    /// The refresh token that was stored at the claim; its answer counts while it is still the stored one.
    var refreshToken: Grant.RefreshToken?
    /// `true` if the result of an earlier claim on the grant was never committed, so that an answer may be lost.
    var followsUnfinishedClaim: Bool = false
}
