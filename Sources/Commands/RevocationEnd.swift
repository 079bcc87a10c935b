/// The state of the revocation at Google when a command ends.
enum RevocationEnd: String {
    /// Google has revoked the grant, or there was no token to revoke.
    case done
    /// A running worker tries again for a day.
    case pending
    /// Another stored grant shares the Google account and would end with it.
    case shared = "not_requested"

    /// The end of a sentence about a grant that has ended here.
    var clause: String {
        switch self {
        case .done: " and revoked at Google; the tokens are deleted"
        case .pending: "; the revocation at Google has not succeeded yet: a running worker tries again for a day"
        case .shared:
            """
            , and the tokens deleted; not revoked at Google, because another stored grant shares the Google account \
            and would end with it
            """
        }
    }
}
