package import Base
package import Storage

/// A grant as JSON, as `grants list` and `grants show` and the routes of administration return it.
extension Grant {
    /// Adds all fields except the tokens.
    package func write(to line: inout JSONLine) {
        line.field("user_id", userID)
        line.field("state", state.rawValue)
        line.fieldOrNull("reason", reason == .none ? nil : reason.rawValue)
        line.field("since", since.iso8601)
        line.fieldOrNull("google_email", owner.email)
        line.fieldOrNull("scope", scope.isEmpty ? nil : scope)
        line.field("client_id", clientID)
        line.fieldOrNull("expires_at", accessToken?.expiresAt.iso8601)
        line.fieldOrNull("due_at", dueAt?.iso8601)
        line.fieldOrNull("last_success_at", lastSuccessAt?.iso8601)
        line.field("attempts", attempts)
        line.field("generation", generation)
        line.field("grant", id.description)
    }

    /// Adds the same fields and the grant's warnings.
    package func writeWithWarnings(to line: inout JSONLine, at now: Timestamp) {
        write(to: &line)
        line.fieldOrNull("refresh_token_expires_at", refreshToken?.expiresAt?.iso8601)
        line.array("warnings") { warnings in
            for warning in GrantWarning.all(of: self, at: now) { warnings.element(warning.rawValue) }
        }
    }
}

/// The state of the revocation at Google after a grant has ended here.
package enum RevocationEnd: String, Sendable {
    /// Google has revoked the grant, or there was no token to revoke.
    case done
    /// A running worker tries again for a day.
    case pending
    /// Another stored grant shares the Google account and would end with it.
    case shared = "not_requested"

    /// The state right after the end, before Google is asked.
    fileprivate init(of grant: Grant, isShared: Bool) {
        self = isShared ? .shared : grant.revocationAskedAt == nil ? .done : .pending
    }

    /// Adds what the end of a user's grant says.
    package func write(to line: inout JSONLine, ofUser user: String) {
        line.field("user_id", user)
        line.field("revocation", rawValue)
    }
}

extension GrantEnding {
    /// The state of the revocation right after the end.
    package var plannedEnd: RevocationEnd { RevocationEnd(of: grant, isShared: isShared) }
}

extension AccountDeletion {
    /// The state of the revocation right after the deletion, or `nil` if there is no grant.
    package var plannedEnd: RevocationEnd? { grant.map { RevocationEnd(of: $0, isShared: isShared) } }

    /// Adds what the deletion of a user says.
    package func write(to line: inout JSONLine, ofUser user: String, _ revocation: RevocationEnd?) {
        line.field("user_id", user)
        line.field("ended_sessions", endedSessions)
        line.fieldOrNull("revocation", revocation?.rawValue)
    }
}

extension GrantRetry {
    /// The reason why a grant was left as it is, which continues a sentence about it, or `nil` if all is well.
    package func problem(of grant: Grant) -> String? {
        switch self {
        case .due, .inFlight, .accountDisabled: return nil
        case .awaitingConfirmation:
            let due = grant.dueAt.map { " at \($0.iso8601Seconds)" } ?? ""
            return "waits for the confirmation of an invalid_grant\(due), which must not come early"
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
