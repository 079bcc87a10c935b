extension Grant {
    /// The Google account of a grant, as far as it is known.
    package struct Owner: Hashable, Sendable {
        package var googleUserID: String?
        package var email: String?
        package var name: String?
        package var emailIsVerified: Bool?

        package init(
            googleUserID: String? = nil,
            email: String? = nil,
            name: String? = nil,
            emailIsVerified: Bool? = nil
        ) {
            self.googleUserID = googleUserID
            self.email = email
            self.name = name
            self.emailIsVerified = emailIsVerified
        }
    }
}

extension Grant.Owner {
    /// `true` if both are known to be the same account at Google: by their ids if both are known, else by the e-mails
    /// without regard to case.
    package func isSameAccount(as other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID == otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.lowercased() == otherEmail.lowercased()
    }

    /// `true` if both are known to be different accounts at Google. The ids decide if both are known, else the e-mails
    /// without regard to case. An unknown value does not count as a difference.
    package func isOtherAccount(than other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID != otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.lowercased() != otherEmail.lowercased()
    }

    /// Replaces the fields that the other owner has.
    mutating func merge(_ other: Self) {
        googleUserID = other.googleUserID ?? googleUserID
        email = other.email ?? email
        name = other.name ?? name
        emailIsVerified = other.emailIsVerified ?? emailIsVerified
    }
}
