internal import Storage

/// The stored users that a Google account may be linked to by its e-mail address.
package enum EmailLinking: String, CaseIterable, Sendable {
    /// Users whose address was verified by Google, or by the backend according to its token.
    case verified
    /// Users with any address, even one that its user has only claimed.
    case any
    /// No user.
    case never

    func mayLink(_ user: User) -> Bool {
        switch self {
        case .verified: user.emailIsVerified == true
        case .any: true
        case .never: false
        }
    }
}
