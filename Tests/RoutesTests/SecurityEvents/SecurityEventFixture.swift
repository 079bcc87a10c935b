import Glibc
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import GoogleOAuth
@testable import HTTPServer
@testable import Routes
@testable import Scheduler
@testable import Storage

/// A receiver over a store, with an engine; the fixture sets the token that a posted body is parsed as.
final class SecurityEventFixture: Sendable {
    static let account = "117"

    let time = ManualTime(immediateUpTo: .milliseconds(5))
    let store: TestStore
    let vault: TokenVault
    let lines = CapturedLines()
    let google = PausableEndpoint()
    let engine: RefreshEngine
    let counters: EventCounters
    private let log: EngineLog
    private let verified = Mutex<Result<SecurityEventToken, SecurityEventError>>(
        .failure(.unavailable(retryAfter: .seconds(10)))
    )

    init() throws {
        store = try TestStore(time: time, random: SeededRandom(seed: 1))
        let ring = try KeyRing(keys: [RingKey.random()])
        vault = TokenVault(ring: try ReloadableKeyRing { ring })
        counters = EventCounters(time: time)
        log = EngineLog(
            metrics: MetricsLog(sink: lines, worker: "w", time: time),
            diagnostics: DiagnosticLog(level: .error, time: time, descriptor: open("/dev/null", O_WRONLY)),
            counters: counters,
            time: time
        )
        engine = RefreshEngine(
            store: store,
            endpoint: google,
            vault: vault,
            configuration: EngineConfiguration(
                workerName: "w",
                maxRate: 100,
                scanInterval: .seconds(600),
                scanAhead: .seconds(600)
            ),
            time: time,
            random: SeededRandom(seed: 2),
            log: log
        )
    }

    var receiver: SecurityEventReceiver {
        let engine = engine
        return SecurityEventReceiver(
            verify: { [self] _ throws(SecurityEventError) in try verified.withLock { $0 }.get() },
            store: store,
            log: log,
            time: time,
            onChange: { await engine.storeChanged() }
        )
    }

    /// Posts events as Google does: with only the time of issue.
    @discardableResult
    func post(
        _ event: SecurityEvent...,
        id: String = "jti",
        audiences: [String] = ["client"],
        issuedAt: Timestamp? = nil,
        happenedAt: Timestamp? = nil
    ) async -> ServerResponse {
        let token = SecurityEventToken(
            id: id,
            audiences: audiences,
            issuedAt: issuedAt ?? time.now,
            happenedAt: happenedAt,
            events: event
        )
        verified.withLock { $0 = .success(token) }
        return await send()
    }

    func refuse(_ refusal: SecurityEventError) async -> ServerResponse {
        verified.withLock { $0 = .failure(refusal) }
        return await send()
    }

    private func send() async -> ServerResponse {
        await receiver.response(to: ServerRequest(method: "POST", path: "/v1/google/security-events"))
    }

    /// Stores a grant with its user, connected an hour ago by default.
    func connect(
        _ number: Int64,
        userID: String? = nil,
        account: String? = SecurityEventFixture.account,
        refreshToken: String? = nil,
        clientID: String = "client",
        state: GrantState = .active,
        age: Duration = .seconds(3600)
    ) async throws {
        let id = GrantID(rawValue: number)
        let incoming = IncomingTokens(
            clientID: clientID,
            owner: Grant.Owner(googleUserID: account),
            refreshToken: try vault.seal(
                refreshToken: Secret(refreshToken ?? "1//0e-token-\(number)-abcdefgh"),
                for: id
            ),
            accessToken: Grant.AccessToken(
                sealed: try vault.seal(accessToken: Secret("ya29.\(number)"), for: id),
                obtainedAt: time.now - age,
                expiresAt: time.now + .seconds(3600)
            )
        )
        let now = time.now - age
        try await store.transact { transaction in
            if var grant = try transaction.grant(id) {
                let events = grant.reconnect(
                    incoming,
                    replacesRefreshToken: true,
                    discardsStored: false,
                    dueAt: now + age + .seconds(3000),
                    at: now
                )
                try transaction.update(grant)
                for event in events { try transaction.record(event) }
                return
            }
            var (grant, events) = Grant.connected(
                id: id,
                userID: userID ?? "user-\(number)",
                incoming: incoming,
                dueAt: now + age + .seconds(3000),
                at: now
            )
            if state != .active { grant.restore(state: state, reason: .none, since: now) }
            try transaction.insert(grant)
            for event in events { try transaction.record(event) }
        }
    }

    func grant(_ number: Int64) async throws -> Grant {
        try #require(try await store.grant(GrantID(rawValue: number)))
    }

    /// Starts sessions of a user, who is added if necessary.
    func startSessions(_ count: Int, of user: String, account: String? = nil) async throws {
        let now = time.now
        let random = SeededRandom(seed: UInt64(user.utf8.count))
        try await store.transact { transaction in
            if try transaction.user(user) == nil {
                try transaction.insert(User(id: user, createdAt: now, googleUserID: account))
            }
            for _ in 0..<count {
                try transaction.insert(
                    Session.start(
                        id: .random(from: random),
                        userID: user,
                        tokenHash: [1],
                        expiresAt: now + .seconds(86_400),
                        at: now,
                        leaseTime: transaction.leaseTime
                    )
                )
            }
        }
    }

    /// Ends the sessions of a user, and returns their number.
    func endSessions(of user: String) async throws -> Int {
        try await store.transact { try $0.endSessions(ofUser: user) }
    }
}
