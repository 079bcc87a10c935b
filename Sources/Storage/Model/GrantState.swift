/// The state of a grant, which decides the next action.
package enum GrantState: String, CaseIterable, Sendable, Codable {
    /// The last refresh, or the app's own token, is good. Next: `retrying`, `suspended`, `reauthRequired`,
    /// `disconnected`.
    case active
    /// The last attempts failed for reasons that might pass, or wait for confirmation. Next: any.
    case retrying
    /// An administrator or a policy blocks it, and can lift the block: probed once a day. Next: any.
    case suspended
    /// Only the user can repair it, by signing in again. Next: as for `disconnected`.
    case reauthRequired = "reauth_required"
    /// Ended, because Google said so or the user asked. Next: `active` when the app brings tokens, or a late response
    /// the successor of the refused one. `retrying` if the answer that ended it turns out to be part of a wave.
    case disconnected

    /// `true` if the user's profile shows the account as connected.
    package var isConnected: Bool { self == .active || self == .retrying }

    /// `true` if no refresh is sent while the grant is in this state.
    package var endsRefreshes: Bool { self == .reauthRequired || self == .disconnected }

    /// The states of which ``isConnected`` is true, as SQL lists them.
    static let connectedList = allCases.filter(\.isConnected).sqlList
    /// The states of which ``endsRefreshes`` is true, as SQL lists them.
    static let refreshEndingList = allCases.filter(\.endsRefreshes).sqlList
}
