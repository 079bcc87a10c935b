import Records
import Scheduler

extension RevocationEnd {
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

    /// The end of a plan to end a grant here.
    var planClause: String {
        switch self {
        case .done: "; nothing is left to revoke at Google"
        case .pending: " and revoke it at Google"
        case .shared: ", not at Google, because another stored grant shares the Google account"
        }
    }
}
