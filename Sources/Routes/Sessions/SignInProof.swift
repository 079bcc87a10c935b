internal import Base
internal import Crypto
internal import Storage

/// The owner of a Google account who signs in, and the token that proves it.
struct ProvenOwner: Sendable {
    let identity: GoogleIdentity
    let proof: SignInProof
}

/// The Google token that proves who signs in.
enum SignInProof: Sendable {
    case accessToken(Secret)
    /// An ID token, which counts once.
    case idToken(digest: [UInt8], expiresAt: Timestamp)

    /// How long an ID token that was used is remembered after its end. More than the difference between the clocks of
    /// two workers.
    private static let memory = Duration.seconds(3600)

    /// Throws if the token does not prove the identity to the worker, whatever Google says. The store remembers used ID
    /// tokens, because all workers share it.
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
            // Used ID tokens are kept among the identifiers of security events, which are deleted by the time that is
            // recorded with them.
            let recordedAt = expiresAt + Self.memory - Retention.identifiers
            let isFirst = try transaction.recordOnce(
                "id-token:\(Hexadecimal.encode(digest))",
                at: recordedAt
            )
            guard isFirst else { throw AppError.refusedIDToken }
        }
    }
}
