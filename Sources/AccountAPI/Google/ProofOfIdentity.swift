internal import Clocks
internal import Secrets
internal import Store

/// The rule that a Google token proves who its user is only if the app obtained it.
enum ProofOfIdentity {
    /// Throws if the worker itself obtained the token by a refresh: a service that it was handed to could sign in with it.
    static func check(
        _ accessToken: Secret,
        of identity: GoogleIdentity,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        let digest = IssuedTokens.digest(of: accessToken)
        // A grant whose account is not known by its id is found by its address.
        let (example, _) = Grant.connected(
            id: GrantID(rawValue: 0),
            userID: "",
            handover: Handover(clientID: identity.clientID, owner: identity.owner),
            dueAt: nil,
            at: now
        )
        let grants =
            try transaction.grants(ofGoogleUser: identity.googleUserID)
            + transaction.grants(sharingAccountWith: example)
        if grants.contains(where: { $0.issuedTokens.contains(digest) }) { throw IdentityFailure.refused }
    }
}
