internal import Base
internal import Crypto
internal import GoogleOAuth
internal import Storage

/// The Google token that proves who signs in.
enum SignInProof: Sendable {
    case accessToken(Secret)
    /// An ID token, which counts once.
    case idToken(digest: [UInt8], expiresAt: Timestamp)

    /// How long an ID token that was used is remembered after its end.
    ///
    /// More than the difference between the clocks of two workers.
    private static let memory = Duration.seconds(3600)

    /// Throws if the token does not prove the identity to the worker, whatever Google says.
    ///
    /// The store remembers used ID tokens, because all workers share it.
    func check(
        in transaction: any StoreTransaction,
        owner: Grant.Owner,
        stored: User?,
        at now: Timestamp
    ) throws {
        switch self {
        case .accessToken(let token):
            try transaction.refuse(token, issuedTo: owner, at: now)
            if let stored { try transaction.refuse(token, issuedToUser: stored.id) }
        case .idToken(let digest, let expiresAt):
            // Recorded ids are deleted after their retention.
            let recordedAt = expiresAt + Self.memory - Retention.securityEvents
            let isFirst = try transaction.record(
                securityEvent: "id-token:\(Hexadecimal.encode(digest))",
                at: recordedAt
            )
            guard isFirst else { throw APIError.refusedIDToken }
        }
    }
}

extension RouteDependencies {
    private static let issuers = ["accounts.google.com", "https://accounts.google.com"]

    /// Returns the owner of an ID token, by Google's keys
    /// (https://developers.google.com/identity/sign-in/ios/backend-auth).
    ///
    /// The app passes the nonce that it gave to Google's SDK, if any.
    func identity(
        ofIDToken text: String,
        nonce: String?
    ) async throws(APIError) -> (GoogleIdentity, SignInProof) {
        let token: SignedToken
        do throws(CryptoError) {
            token = try SignedToken(text)
            try token.checkUse(at: time.now)
        } catch {
            throw .refusedIDToken
        }
        guard let id = token.keyID else { throw .refusedIDToken }
        let key: PublicKey?
        do throws(KeySetCache.Unavailable) {
            key = try await googleKeys.key(id: id).key
        } catch {
            throw .googleUnreachable
        }
        guard let key, token.verifies(with: key),
            token.claims["iss"]?.string.map(Self.issuers.contains) == true,
            nonce == nil || token.claims["nonce"]?.string == nonce,
            let expiresAt = token.claims["exp"]?.timestamp,
            let user = UserInfo(token.claims), let info = TokenInfo(token.claims),
            let identity = GoogleIdentity(
                user,
                info,
                clientIDs: clientIDs,
                serverClientID: exchanges?.client()?.id
            )
        else { throw .refusedIDToken }
        return (identity, .idToken(digest: token.digest, expiresAt: expiresAt))
    }
}
