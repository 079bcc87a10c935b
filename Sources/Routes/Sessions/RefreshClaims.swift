internal import Base
internal import Crypto
internal import Storage

/// The claims of a refresh token whose signature was checked.
///
/// A token that the worker issued names its session. A token of the former backend has `sub` or `user_id`, `email` and
/// `exp`. Its session's id comes from its hash, so that simultaneous requests with one former token share one session.
struct RefreshClaims: Hashable, Sendable {
    let userID: String
    let sessionID: SessionID
    let hash: [UInt8]
    /// `true` if the token's own times are valid, as an access token's must be.
    let isTimely: Bool
    /// The expiry of a former token, or `nil` for a token that the worker issued.
    private let formerExpiry: Timestamp?

    init?(_ claims: JSONValue, of token: String, userClaim: String, isTimely: Bool) {
        guard claims["type"]?.string == "refresh" else { return nil }
        self.isTimely = isTimely
        hash = SessionTokenPair.hash(Secret(token))
        if let session = claims["sid"] {
            guard let userID = claims["sub"]?.string, let text = session.string, let id = SessionID(text: text) else {
                return nil
            }
            self.userID = userID
            sessionID = id
            formerExpiry = nil
        } else {
            // A former token that does not name its user cannot begin a session.
            guard let userID = Self.formerUser(claims, userClaim: userClaim), let expiry = claims["exp"]?.timestamp,
                let id = SessionID(bytes: Array(hash.prefix(SessionID.byteCount)))
            else { return nil }
            self.userID = userID
            sessionID = id
            formerExpiry = expiry
        }
    }

    private static func formerUser(_ claims: JSONValue, userClaim: String) -> String? {
        do throws(AppError) {
            return try claims.userID(of: userClaim)
        } catch {
            return nil
        }
    }

    /// `true` for a former token that can begin a session now. After `end`, no former token can.
    func mayBegin(at now: Timestamp, until end: Timestamp?) -> Bool {
        guard let end, now < end else { return false }
        return formerExpiry != nil && isTimely
    }

    /// Records that a former token has begun its session, or never will, and returns `false` if that is recorded
    /// already.
    ///
    /// Without the record, a token whose session has ended would begin another one.
    func recordFormer(in transaction: any StoreTransaction, at now: Timestamp) throws -> Bool {
        guard let formerExpiry else { return false }
        // Recorded ids are deleted after a while. This one must outlast the token.
        let recordedAt = max(now, formerExpiry - Retention.identifiers + .seconds(86_400))
        return try transaction.recordOnce(
            "former-refresh-token:" + Hexadecimal.encode(hash),
            at: recordedAt
        )
    }

    /// The fields that identify the session in a log line. They contain neither a token nor personal data.
    var logFields: KeyValuePairs<String, String> { ["session": sessionID.description] }
}
