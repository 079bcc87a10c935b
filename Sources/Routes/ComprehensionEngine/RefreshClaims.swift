internal import Base
internal import Crypto
internal import Storage

/// The claims of a refresh token whose signature was checked.
///
/// A token that the worker issued names its session. A token of the former backend has `sub` or `user_id`, `email` and
/// `exp`; its session's id comes from its hash, so that simultaneous requests with one former token share one session.
struct RefreshClaims: Hashable, Sendable {
    let userID: String
    let sessionID: SessionID
    let hash: [UInt8]
    /// `true` if the token's own times are valid, as an access token's must be.
    let isTimely: Bool
    /// The expiry of a former token; `nil` for a token that the worker issued.
    private let formerExpiry: Timestamp?

    init?(_ claims: JSONValue, of token: String, isTimely: Bool) {
        guard claims["type"]?.string == "refresh" else { return nil }
        self.isTimely = isTimely
        hash = SessionTokenIssuer.hash(Secret(token))
        if claims["sid"] == nil {
            let userID: String
            do throws(AuthenticationRefusal) {
                userID = try UserIdentifier(claims).text
            } catch {
                // A former token that does not name its user cannot begin a session.
                return nil
            }
            guard let expiry = claims["exp"]?.timestamp,
                let sessionID = SessionID(bytes: Array(hash.prefix(SessionID.byteCount)))
            else { return nil }
            (self.userID, self.sessionID, formerExpiry) = (userID, sessionID, expiry)
        } else {
            guard let userID = claims["sub"]?.string,
                let sessionID = claims["sid"]?.string.flatMap({ SessionID(text: $0) })
            else { return nil }
            (self.userID, self.sessionID, formerExpiry) = (userID, sessionID, nil)
        }
    }

    /// `true` for a former token that may begin a session now.
    func mayBegin(at now: Timestamp, _ settings: SessionSettings) -> Bool {
        guard formerExpiry != nil, isTimely, let end = settings.acceptFormerTokensUntil else { return false }
        return now < end
    }

    /// Records that a former token has begun its session, or never will; returns `false` if that is recorded already.
    ///
    /// Without the record, a token whose session has ended would begin another one.
    func recordFormer(in transaction: any StoreTransaction, at now: Timestamp) throws -> Bool {
        guard let formerExpiry else { return false }
        // Recorded ids are deleted after a while; this one must outlast the token.
        let recordedAt = max(now, formerExpiry - Retention.securityEvents + .seconds(86_400))
        return try transaction.record(
            securityEvent: "former-refresh-token:" + Hexadecimal.encode(hash),
            at: recordedAt
        )
    }

    /// The fields that identify the session in a log line; they contain neither a token nor personal data.
    var logFields: KeyValuePairs<String, String> { ["session": sessionID.description] }
}
