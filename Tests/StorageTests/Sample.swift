import TestSupport

@testable import Base
@testable import Crypto
@testable import Storage

/// The start of every ``ManualTime`` of these tests.
let start = ManualTime().now

enum Sample {
    static let key = "0a1b2c3d"
    static let otherKey = "ffee0011"

    /// Returns a value in the form of a sealed one, with `text` in place of the ciphertext.
    static func sealed(_ text: String, key: String = key) throws -> SealedSecret {
        let nonce = [UInt8](repeating: 7, count: 12)
        let tag = [UInt8](repeating: 9, count: 16)
        return try SealedSecret(bytes: [2, 8] + Array(key.utf8) + nonce + Array(text.utf8) + tag)
    }

    static func refreshToken(_ text: String, expiresAt: Timestamp? = nil, key: String = key) throws
        -> Grant.RefreshToken
    {
        Grant.RefreshToken(sealed: try sealed(text, key: key), expiresAt: expiresAt)
    }

    static func accessToken(_ text: String, obtainedAt: Timestamp = start, key: String = key) throws
        -> Grant.AccessToken
    {
        Grant.AccessToken(
            sealed: try sealed(text, key: key),
            obtainedAt: obtainedAt,
            expiresAt: obtainedAt + .seconds(3600)
        )
    }

    /// Returns a grant of user "user N" with id N, due a second later for each N.
    static func grant(
        _ number: Int64,
        dueAt: Timestamp? = nil,
        owner: Grant.Owner = Grant.Owner(),
        refreshToken: String? = "refresh",
        accessToken: String? = "access"
    ) throws -> Grant {
        Grant.connected(
            id: GrantID(rawValue: number),
            userID: "user \(number)",
            incoming: IncomingTokens(
                clientID: "client \(number % 2)",
                owner: owner,
                scope: "openid email",
                refreshToken: try refreshToken.map { try Self.refreshToken("\($0) \(number)") },
                accessToken: try accessToken.map { try Self.accessToken("\($0) \(number)") }
            ),
            dueAt: dueAt ?? start + .seconds(number),
            at: start
        ).grant
    }

    /// Returns the user of grant N, with all that a sign-in tells.
    static func user(_ number: Int64, lastLoginAt: Timestamp? = start) -> User {
        User(
            id: "user \(number)",
            createdAt: start,
            email: "a@b.c",
            emailIsVerified: true,
            name: "A",
            picture: "p",
            googleUserID: "\(number)",
            lastLoginAt: lastLoginAt
        )
    }

    /// Returns a grant with id N whose every column has a value that a new grant does not have.
    static func fullGrant(_ number: Int64, userID: String? = nil) throws -> Grant {
        var issued = IssuedTokens()
        for number in 1...2 {
            let digest = IssuedTokens.digest(of: Secret("token \(number)"))
            issued.insert(digest, until: start + .seconds(number), at: start)
        }
        var accessToken = try accessToken("", obtainedAt: start - .seconds(100))
        accessToken.type = "MAC"
        var refreshToken = try refreshToken("r", expiresAt: start + .seconds(2))
        refreshToken.marks = TokenMarks(prefix: [1, 2], digest: [3])
        refreshToken.bindingKeyID = KeyID("0000000b")
        refreshToken.consentedAt = start + .seconds(13)
        refreshToken.isExpiryNoticed = true
        return Grant(
            id: GrantID(rawValue: number),
            userID: userID ?? "user \(number)",
            connection: .default,
            createdAt: start,
            clientID: "client",
            owner: Grant.Owner(googleUserID: "123", email: "A@b.c", name: "", emailIsVerified: false),
            scope: "",
            state: .retrying,
            reason: GrantReason(rawValue: "network"),
            since: start + .seconds(1),
            generation: 7,
            refreshToken: refreshToken,
            accessToken: accessToken,
            dueAt: start + .seconds(30),
            failures: 4,
            failingSince: Timestamp(milliseconds: 0),
            lastSuccessAt: start + .seconds(6),
            lastAttemptAt: start + .seconds(8),
            isProven: true,
            revocationAskedAt: start + .seconds(9),
            suspectedSince: start + .seconds(10),
            quickRefreshes: 2,
            answerLostAt: start + .seconds(11),
            rotationClaims: [0, 1, .max, 1 << 40],
            issuedTokens: issued,
            labels: ConnectionLabels(["tenant": "acme"]) ?? .none,
            formerTokensUntil: start + .seconds(12),
            lease: Lease(owner: "worker", claim: 10, epoch: "boot", until: BootInstant(milliseconds: 11))
        )
    }

    static func grants(_ numbers: ClosedRange<Int64>) throws -> [Grant] {
        try numbers.map { try grant($0) }
    }
}

extension Sample {
    static func notice(_ key: Notice.Key, id: NoticeID = NoticeID(high: 0, low: 0)) -> Notice {
        Notice(key: key, id: id, at: start, trace: nil, content: .userDeleted, pendingSince: start, attempts: 0)
    }

    /// The trace of a request.
    static let trace = TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")

    /// Returns a session of a user, with token hash `[1]`, that lives for an hour.
    static func session(_ number: UInt8, user: String = "user") -> Session {
        Session(
            id: sessionID(number),
            userID: user,
            createdAt: start,
            expiresAt: start + .seconds(3600),
            family: TokenFamily(firstHash: [1], at: leaseTime),
            successor: nil,
            successorUntil: nil
        )
    }

    /// The first instant of the clock that a session's grace uses.
    static let leaseTime = LeaseTime(epoch: "boot", instant: BootInstant(milliseconds: 1_000_000))

    /// Presents a token hash to a session at a time after ``start``; a new token would have the hash `[next]`.
    static func rotate(
        _ session: inout Session,
        _ presented: UInt8,
        to next: UInt8,
        after span: Duration = .zero,
        successor: String? = nil
    ) throws -> RotationOutcome {
        session.rotate(
            presented: [presented],
            to: [next],
            successor: try sealed(successor ?? "token \(next)"),
            expiresAt: start + span + .seconds(7200),
            at: start + span,
            leaseTime: LeaseTime(epoch: leaseTime.epoch, instant: leaseTime.instant + span),
            grace: Session.defaultGrace
        )
    }

    /// Returns the text of a value that ``sealed(_:key:)`` made.
    static func unsealed(_ sealed: SealedSecret) -> Int? {
        Int(String(decoding: sealed.bytes.dropFirst(22).dropLast(16), as: UTF8.self))
    }

    /// Returns a vault with one new random key.
    static func vault() throws -> TokenVault {
        let ring = try KeyRing(keys: [try RingKey.random()])
        return TokenVault(ring: try ReloadableKeyRing { ring })
    }

    static func sessionID(_ number: UInt8) -> SessionID {
        let digits = String(number, radix: 16)
        guard let id = SessionID(text: String(repeating: "0", count: 32 - digits.count) + digits) else {
            preconditionFailure("\(number) makes no session id")
        }
        return id
    }
}

extension Store {
    /// Returns the stored notice of this key, as far as its end needs it, or one that was never stored.
    func notice(_ key: Notice.Key) async throws -> Notice {
        let records = try await records(of: .notice, after: nil, atMost: 1000)
        let stored = records.first { $0.key == [.text(key.userID), .integer(key.number)] }
        let position = Notice.table.columns.firstIndex { $0.name == "id" } ?? 0
        guard case .bytes(let bytes?) = stored?.values[position], let id = NoticeID(bytes: bytes) else {
            return Sample.notice(key)
        }
        return Sample.notice(key, id: id)
    }

    /// Returns what is stored of a session.
    func stored(_ session: Session) async throws -> Session? {
        try await self.session(session.id, ofUser: session.userID)
    }

    /// Stores sessions, and their users if there are none.
    func startSessions(_ sessions: [Session]) async throws {
        try await transact { transaction in
            for session in sessions {
                if try transaction.user(session.userID) == nil {
                    try transaction.insert(User(id: session.userID, createdAt: start))
                }
                try transaction.insert(session)
            }
        }
    }
}
