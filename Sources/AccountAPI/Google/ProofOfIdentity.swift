internal import Secrets
internal import Store

/// The rule that a Google token proves who its user is only if the app obtained it.
enum ProofOfIdentity {
    /// Throws if the worker itself obtained the token by a refresh: a service that it was handed to could sign in with it.
    static func check(
        _ accessToken: Secret,
        of identity: GoogleIdentity,
        in transaction: any StoreTransaction
    ) throws {
        let digest = IssuedTokens.digest(of: accessToken)
        if try transaction.issuedTokens(toAccount: identity.owner).contains(where: { $0.contains(digest) }) {
            throw IdentityFailure.refused
        }
    }
}
