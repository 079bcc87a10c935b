import Base

extension Grant {
    /// `true` if a refusal is in doubt: a refresh at the due time is its confirmation.
    package var isInDoubt: Bool {
        if GrantReason.inDoubt.contains(reason) { return true }
        // It keeps the reason of its block. Only a doubt about another refusal gives it a suspicion.
        return state == .suspended && suspectedSince != nil
    }
}
