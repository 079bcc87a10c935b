import Base
package import Crypto

/// The meaning of the token endpoint's answer to a code.
///
/// The texts are for logs: they never contain the code, a token or the client's secret.
package enum CodeExchange: Sendable {
    /// The tokens. The refresh token, if there is one, is the member `rotated`.
    case granted(TokenResponse)
    /// A faulty 200 whose refresh token arrived complete. The code is spent, so it must be kept.
    case incomplete(refreshToken: Secret)
    /// The code is spent or has expired, or a policy forbids it.
    case refused(String)
    /// The code is of another client or user interface: the app and the worker do not name the same client.
    case foreign(String)
    /// Google does not accept the client id or its secret, so nothing is known about the code.
    case clientRefused(String)
    /// Google does not accept the proof for a bound token, which says nothing about the code.
    case proofRefused(ProofRefusal, reason: String)
    /// Google could not be reached, or answered with a fault that might pass.
    case unavailable(String)

    /// The time limit of one exchange.
    package static let deadline: Duration = .seconds(15)

    package init(_ response: ParsedRefreshResponse) {
        let text = response.text ?? response.verdict.code
        self =
            switch response.verdict {
            case .granted(let tokens): .granted(tokens)
            case .flawed(_, let token?): .incomplete(refreshToken: token)
            // Google has answered, so the code is spent.
            case .flawed(_, nil): .refused(text)
            case .failed(let failure): Self.meaning(of: failure, text: text)
            }
    }

    private static func meaning(of failure: RefreshFailure, text: String) -> CodeExchange {
        switch failure {
        case .invalidGrant, .signInRequired, .blocked: .refused(text)
        // A code that a web page got has the address of that page.
        case .clientOrForeignToken, .unknown("redirect_uri_mismatch"): .foreign(text)
        case .clientFault, .appNotAuthentic: .clientRefused(text)
        case .proofRefused(let code): .proofRefused(ProofRefusal(code: code), reason: text)
        case .notJSON, .throttled, .endpointFault, .noAnswer, .notSent, .givenUp, .unknown:
            .unavailable(text)
        }
    }
}
