import Base

extension Grant {
    /// `true` if a refusal is in doubt: a refresh at the due time is its confirmation.
    package var isInDoubt: Bool {
        GrantReason.inDoubt.contains(reason) || state == .suspended && suspectedSince != nil
    }
}
