internal import Base
internal import Crypto
internal import Storage

/// The rule that a Google token proves the identity of its user only if the app obtained it.
extension StoreTransaction {
    /// Throws if the worker obtained the token by a refresh: a service that got the token could sign in with it.
    func refuse(_ accessToken: Secret, issuedTo owner: Grant.Owner, at now: Timestamp) throws {
        try refuse(accessToken, among: try issuedTokens(toAccount: owner, at: now))
    }

    /// Throws if the token comes from one of the user's own grants, which might name another account or none.
    func refuse(_ accessToken: Secret, issuedToUser userID: String) throws {
        try refuse(accessToken, among: try grants(ofUser: userID).map(\.issuedTokens))
    }

    private func refuse(_ accessToken: Secret, among issued: [IssuedTokens]) throws {
        let digest = IssuedTokens.digest(of: accessToken)
        if issued.contains(where: { $0.contains(digest) }) { throw AppError.refusedByGoogle }
    }
}
