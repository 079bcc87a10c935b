import Base
import Crypto
import Scheduler
import Storage

/// One grant of a benchmark.
///
/// Its number is part of its user's name and of its tokens, so that the endpoint's log can be compared with the store.
struct SampleGrant {
    /// The client id with which the harness starts the worker.
    private static let clientID = "bench"
    /// The lifetime of Google's access tokens.
    static let lifetime: Duration = .seconds(3600)
    /// The time of the first refresh before the instant: long enough for the due times of any policy to become regular.
    private static let past: Duration = .seconds(2 * 3600)
    private static let scope = "openid email https://www.googleapis.com/auth/gmail.readonly"

    let number: Int
    let id: GrantID
    let obtainedAt: Timestamp
    let dueAt: Timestamp
    /// The key that its refresh token is bound to.
    var bindingKeyID: KeyID?

    /// Follows the policy from long ago until `instant`: the next due time and the time of the last token result from
    /// it.
    init(number: Int, id: GrantID, workedUntil instant: Timestamp) {
        self.number = number
        self.id = id
        // The low bits of the id do not affect its phase.
        var obtainedAt = instant - Self.past - Self.lifetime * (Double(id.rawValue & 0xfffff) / 0x100000)
        var dueAt = Self.due(obtainedAt: obtainedAt, id: id)
        while dueAt <= instant {
            obtainedAt = dueAt
            dueAt = Self.due(obtainedAt: obtainedAt, id: id)
        }
        self.obtainedAt = obtainedAt
        self.dueAt = dueAt
    }

    private static func due(obtainedAt: Timestamp, id: GrantID) -> Timestamp {
        DuePolicy.due(obtainedAt: obtainedAt, expiresAt: obtainedAt + lifetime, phase: id.phase)
    }

    /// Returns the grant as the worker would have stored it after its last refresh.
    func stored(vault: TokenVault) throws -> Grant {
        let incoming = IncomingTokens(
            clientID: Self.clientID,
            owner: Grant.Owner(
                googleUserID: "1" + Self.digits(number, 20),
                email: Self.userID(number) + "@example.com"
            ),
            scope: Self.scope,
            refreshToken: try vault.seal(
                refreshToken: Secret(Self.refreshToken(number)),
                for: id,
                boundTo: bindingKeyID
            )
        )
        var grant = Grant.connected(
            id: id,
            userID: Self.userID(number),
            incoming: incoming,
            dueAt: nil,
            at: obtainedAt - Self.past
        ).grant
        let accessToken = Grant.AccessToken(
            sealed: try vault.seal(accessToken: Secret(Self.firstAccessToken(number)), for: id),
            obtainedAt: obtainedAt,
            expiresAt: obtainedAt + Self.lifetime
        )
        _ = grant.refreshed(RefreshedTokens(accessToken: accessToken), at: obtainedAt) { _ in dueAt }
        return grant
    }

    static func userID(_ number: Int) -> String { "user-" + digits(number, 10) }

    /// Returns the number in a user's name.
    static func number(ofUser userID: String) -> Int? { Int(userID.dropFirst("user-".count)) }

    /// As long as Google's: 103 characters, which begin with the number for the endpoint's log.
    static func refreshToken(_ number: Int) -> String {
        "1//0" + digits(number, 10) + "-" + filling(88, from: number)
    }

    /// Returns the first stored access token of a grant; the endpoint never issues the same one.
    static func firstAccessToken(_ number: Int) -> String {
        "ya29.first-" + digits(number, 10) + filling(199, from: number)
    }

    /// Returns the access token that the endpoint makes from a request's id: the template in
    /// Benchmarks/harness/endpoint.py.
    static func issuedAccessToken(_ requestID: String) -> String {
        "ya29.a0" + String(repeating: requestID, count: 6) + "_" + requestID.prefix(20)
    }

    private static func digits(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: width - digits.count) + digits
    }

    /// Returns characters without a pattern; always the same ones for the same number.
    private static func filling(_ count: Int, from number: Int) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var state = UInt64(number) &* 0x9e37_79b9_7f4a_7c15 &+ 0x1234_5678_9abc_def1
        return String(
            decoding: (0..<count).map { _ in
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                return alphabet[Int(state & 63)]
            },
            as: UTF8.self
        )
    }
}
