internal import Base
internal import Crypto
internal import Storage

/// The rule that a Google token proves the identity of its user only if the app obtained it.
enum ProofOfIdentity {
    /// Throws if the worker obtained the token by a refresh: a service that got the token could sign in with it.
    static func check(
        _ accessToken: Secret,
        of identity: GoogleIdentity,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        try check(accessToken, against: try transaction.issuedTokens(toAccount: identity.owner, at: now))
    }

    /// Throws if the token comes from the user's own grant, which may name another account or none.
    static func check(_ accessToken: Secret, ofUser userID: String, in transaction: any StoreTransaction) throws {
        guard let grant = try transaction.grant(ofUser: userID) else { return }
        try check(accessToken, against: [grant.issuedTokens])
    }

    private static func check(_ accessToken: Secret, against issued: [IssuedTokens]) throws {
        let digest = IssuedTokens.digest(of: accessToken)
        if issued.contains(where: { $0.contains(digest) }) { throw IdentityFailure.refused }
    }
}
