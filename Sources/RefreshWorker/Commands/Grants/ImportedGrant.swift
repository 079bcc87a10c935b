import Clocks
import Secrets
import Store

/// A grant as an import reads it: checked, and its tokens not yet sealed.
struct ImportedGrant: Sendable {
    struct AccessToken: Sendable {
        let secret: Secret
        let obtainedAt: Timestamp
        let expiresAt: Timestamp
        let type: String
    }

    /// The state that the grant had where it came from.
    struct Standing: Equatable, Sendable {
        let state: GrantState
        let reason: GrantReason
        /// `nil` where the input does not tell.
        let since: Timestamp?
    }

    let userID: String
    var clientID: String
    let owner: Grant.Owner
    let scope: String?
    let refreshToken: Secret?
    let refreshTokenExpiresAt: Timestamp?
    let accessToken: AccessToken?
    let standing: Standing?
    /// When the tokens came to where they are brought from, as far as that is known.
    var obtainedAt: Timestamp?
}

/// Why a piece of input is no grant; it names the field, and never shows a value.
struct ImportProblem: Error, Equatable, Sendable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
