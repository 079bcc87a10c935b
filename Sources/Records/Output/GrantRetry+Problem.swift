import Base
package import Storage

extension GrantRetry {
    /// The reason why a grant was left as it is, which continues a sentence about it, or `nil` if all is well.
    package func problem(of grant: Grant) -> String? {
        switch self {
        case .due, .inFlight, .accountDisabled: return nil
        case .awaitingConfirmation:
            let due = grant.dueAt.map { " at \($0.iso8601Seconds)" } ?? ""
            return "waits for the confirmation of a refusal\(due), which must not come early"
        case .noRefreshToken: return "does not have a refresh token: the user must sign in again"
        case .ended:
            let reason = grant.reason == .none ? "" : " (\(grant.reason))"
            let repair =
                grant.reason == .clientMismatch
                ? "; if the client id is wrong, grants set-client brings the grant back" : ""
            return "is \(grant.state.rawValue)\(reason): the user must sign in again\(repair)"
        }
    }
}
