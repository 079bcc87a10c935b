import Base
import Scheduler
import Storage

/// The rule for the first due time of an imported grant.
enum FirstDueTime: Sendable {
    case byToken
    case now
    /// A time within the interval of probes, so that many suspended grants are not all probed at once.
    case withinProbeInterval

    func due(accessToken: Grant.AccessToken?, hasRefreshToken: Bool, id: GrantID, at now: Timestamp) -> Timestamp {
        switch self {
        case .now: now
        case .withinProbeInterval: now + RefreshRules.probeSuspendedAfter * id.phase
        case .byToken:
            DueTimes.due(accessToken: accessToken, hasRefreshToken: hasRefreshToken, phase: id.phase, at: now)
        }
    }
}
