package import Base
package import Crypto
internal import Scheduler
package import Storage

/// A grant as an import reads it: checked, with tokens that are not yet sealed.
package struct ImportedGrant: Sendable {
    package struct AccessToken: Sendable {
        let secret: Secret
        let obtainedAt: Timestamp
        let expiresAt: Timestamp
        let type: String
    }

    /// The state that the grant had at its origin.
    package struct RecordedState: Equatable, Sendable {
        let state: GrantState
        let reason: GrantReason
        /// `nil` if the input does not have it.
        let since: Timestamp?
    }

    package let userID: String
    package var connection = ConnectionID.default
    package var clientID: String
    package var owner: Grant.Owner
    let scope: String?
    let refreshToken: Secret?
    /// The key that the refresh token is bound to, if the input says that it is bound.
    var bindingKeyID: KeyID?
    let refreshTokenExpiresAt: Timestamp?
    let accessToken: AccessToken?
    let recordedState: RecordedState?
    /// The time at which the origin obtained the tokens, if known.
    package var obtainedAt: Timestamp?
    /// `nil` if the input has none, so that the stored ones stay.
    var labels: ConnectionLabels?
}

extension ImportedGrant {
    /// A grant of which only the refresh token is known.
    package init(
        userID: String,
        connection: ConnectionID = .default,
        clientID: String,
        refreshToken: Secret
    ) {
        self.init(
            userID: userID,
            connection: connection,
            clientID: clientID,
            owner: Grant.Owner(),
            scope: nil,
            refreshToken: refreshToken,
            refreshTokenExpiresAt: nil,
            accessToken: nil,
            recordedState: nil
        )
    }

    /// Returns the first due time, with the tokens as they will be stored.
    func firstDueTime(
        _ accessToken: Grant.AccessToken?,
        hasRefreshToken: Bool,
        id: GrantID,
        refreshesAtOnce: Bool,
        at now: Timestamp
    ) -> Timestamp {
        // Within the interval of probes, so that many suspended grants are not all probed at once.
        if recordedState?.state == .suspended { return now + RefreshRules.probeSuspendedAfter * id.phase }
        // The answer to a refresh names the scopes that the input does not.
        if refreshesAtOnce || scope == nil && refreshToken != nil { return now }
        return DuePolicy.due(accessToken: accessToken, hasRefreshToken: hasRefreshToken, phase: id.phase, at: now)
    }
}
