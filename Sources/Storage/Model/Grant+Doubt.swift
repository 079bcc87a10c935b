package import Base

extension Grant {
    /// How long a refusal can be in doubt (`RefreshRules+Doubt.swift`).
    package static let maximumDoubt: Duration = .seconds(3_000)

    /// `true` if a refusal is in doubt: a refresh at the due time is its confirmation.
    package var isInDoubt: Bool {
        if GrantReason.inDoubt.contains(reason) { return true }
        // It keeps the reason of its block. Only a doubt about another refusal gives it a suspicion.
        return state == .suspended && suspectedSince != nil
    }

    /// `true` if the next refresh confirms an earlier refusal or client error, and so must not come early.
    package var awaitsConfirmation: Bool { isInDoubt || GrantReason.unconfirmedReasons.contains(reason) }

    /// When the refusal came that began the doubt, or `nil` if the grant is not in doubt.
    package var inDoubtSince: Timestamp? { isInDoubt ? suspectedSince : nil }

    /// When the first error came that looked like that of a foreign token, or `nil` if the suspicion is of another kind:
    /// the grant is in doubt or suspended.
    package var foreignTokenSuspectedSince: Timestamp? {
        isInDoubt || state == .suspended ? nil : suspectedSince
    }

    /// `true` if a response that comes now confirms or lifts the doubt. Attempts that callers cause earlier do not.
    package func isConfirmation(at now: Timestamp) -> Bool { isInDoubt && pendingConfirmation(at: now) == nil }

    /// The time of the confirmation that the grant waits for, or `nil` if it is not in doubt or the time has come.
    package func pendingConfirmation(at now: Timestamp) -> Timestamp? {
        // A time further ahead was stored before the clock was set back.
        guard isInDoubt, let dueAt, dueAt > now, dueAt <= now + Self.maximumDoubt else { return nil }
        return dueAt
    }
}
