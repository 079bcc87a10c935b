import AccountAPI
import Clocks
import Glibc
import HTTPServer
import JSON
import Observability
import RefreshEngine
import Secrets
import Store
import Synchronization
import TestSupport
import Testing

@testable import GoogleOAuth

/// A receiver over a store in memory, and an engine next to it; the posted text selects the token that it is read as.
final class SecurityEventFixture: Sendable {
    static let account = "117"

    let time = ManualTime(immediateUpTo: .milliseconds(5))
    let store: InMemoryStore
    let vault: TokenVault
    let lines = EventLines()
    let google = HeldGoogle()
    let engine: RefreshEngine
    let counters: IntervalCounters
    private let log: EngineLog
    private let posted = Mutex<Result<SecurityEventToken, SecurityEventRefusal>>(
        .failure(.unavailable(retryAfter: .seconds(10)))
    )

    init() throws {
        store = InMemoryStore(timeSource: time, random: SeededRandom(seed: 1))
        let ring = try KeyRing(keys: [SealingKey.random()])
        vault = TokenVault(ring: try ReloadableKeyRing { ring })
        counters = IntervalCounters(time: time)
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
            read: { [self] _ throws(SecurityEventRefusal) in try posted.withLock { $0 }.get() },
            store: store,
            metrics: MetricsLog(sink: lines, worker: "w", time: time),
            counters: counters.lifetime,
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
        issuedAt: Timestamp? = nil,
        happenedAt: Timestamp? = nil
    ) async -> ServerResponse {
        let token = SecurityEventToken(id: id, issuedAt: issuedAt ?? time.now, happenedAt: happenedAt, events: event)
        posted.withLock { $0 = .success(token) }
        return await answer()
    }

    func refuse(_ refusal: SecurityEventRefusal) async -> ServerResponse {
        posted.withLock { $0 = .failure(refusal) }
        return await answer()
    }

    private func answer() async -> ServerResponse {
        await receiver.answer(ServerRequest(method: "POST", path: "/v1/google/security-events"))
    }

    /// Stores a grant with its user, as if the app had brought it an hour ago.
    func connect(
        _ number: Int64,
        account: String? = SecurityEventFixture.account,
        refreshToken: String? = nil,
        state: GrantState = .active,
        ago age: Duration = .seconds(3600)
    ) async throws {
        let id = GrantID(rawValue: number)
        let incoming = IncomingTokens(
            clientID: "client",
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
                    switchesAccount: false,
                    dueAt: now + age + .seconds(3000),
                    at: now
                )
                try transaction.update(grant)
                for event in events { try transaction.record(event) }
                return
            }
            var (grant, events) = Grant.connected(
                id: id,
                userID: "user-\(number)",
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

    func sessions(of user: String) async throws -> Int {
        try await store.transact { try $0.endSessions(ofUser: user) }
    }
}

/// The lines of a metrics log, in memory.
final class EventLines: LineSink {
    private let lines = Mutex<[JSONValue]>([])

    var droppedLines: Int { 0 }

    func write(_ line: JSONLine) -> Bool {
        guard let value = JSONValue.object(in: line.bytes) else { preconditionFailure("no JSON: \(line.text)") }
        lines.withLock { $0.append(value) }
        return true
    }

    func of(_ event: String) -> [JSONValue] {
        lines.withLock { $0.filter { $0["event"]?.string == event } }
    }

    /// The kind, outcome, grants and sessions of each line about a security event.
    var events: [String] {
        of("security_event").map { line in
            let counts = "\(line["grants"]?.integer ?? -1) \(line["sessions"]?.integer ?? -1)"
            return "\(line["kind"]?.string ?? "") \(line["outcome"]?.string ?? "") \(counts)"
        }
    }
}

/// A token endpoint that grants every refresh until it is set to refuse, and answers only when the test allows it.
actor HeldGoogle: AnsweringEndpoint {
    private(set) var asked = 0
    private var held: [CheckedContinuation<Void, Never>] = []
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var holds = false
    private var refuses = false

    func hold() { holds = true }

    func refuse() { refuses = true }

    func release() {
        holds = false
        for caller in held { caller.resume() }
        held = []
    }

    func waitUntilAsked() async {
        if asked > 0 { return }
        await withCheckedContinuation { waiting.append($0) }
    }

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        asked += 1
        for caller in waiting { caller.resume() }
        waiting = []
        if holds { await withCheckedContinuation { held.append($0) } }
        guard !refuses else { return ParsedRefreshResponse(verdict: .invalidGrant, status: 400) }
        let tokens = TokenResponse(
            accessToken: Secret("ya29.late"),
            lifetime: .seconds(3599),
            type: "Bearer",
            scope: nil,
            rotated: Secret("1//0e-late"),
            refreshTokenLifetime: nil
        )
        return ParsedRefreshResponse(verdict: .granted(tokens), status: 200)
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse { .done }

    func userInfo(accessToken: Secret) async throws(AccountLookupFailure) -> UserInfo {
        guard let info = UserInfo(.object(["sub": .string(SecurityEventFixture.account)])) else { throw .refused }
        return info
    }
}
