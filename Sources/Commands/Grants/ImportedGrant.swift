package import Base
import Crypto
import Storage

/// A grant as an import reads it: checked, with tokens that are not yet sealed.
package struct ImportedGrant: Sendable {
    struct AccessToken: Sendable {
        let secret: Secret
        let obtainedAt: Timestamp
        let expiresAt: Timestamp
        let type: String
    }

    /// The state that the grant had at its origin.
    struct RecordedState: Equatable, Sendable {
        let state: GrantState
        let reason: GrantReason
        /// `nil` if the input does not have it.
        let since: Timestamp?
    }

    package let userID: String
    var clientID: String
    let owner: Grant.Owner
    let scope: String?
    let refreshToken: Secret?
    let refreshTokenExpiresAt: Timestamp?
    let accessToken: AccessToken?
    let recordedState: RecordedState?
    /// The time at which the origin obtained the tokens, if known.
    package var obtainedAt: Timestamp?
}
