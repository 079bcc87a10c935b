import Glibc
import Storage
import Synchronization
import Telemetry
import TestSupport

@testable import Base
@testable import Crypto
@testable import GoogleOAuth
@testable import HTTPServer
@testable import Routes
@testable import Scheduler

/// A token endpoint that fails as a test has set, or returns a new token.
final class VendEndpoint: AnsweringEndpoint {
    private struct State {
        var failure: RefreshFailure?
        var scope: String?
        var rotated: String?
        var calls = 0
    }

    private let state = Mutex(State())

    var calls: Int { state.withLock { $0.calls } }

    func setFailure(_ failure: RefreshFailure?) { state.withLock { $0.failure = failure } }
    func narrow(to scope: String) { state.withLock { $0.scope = scope } }
    func rotate(to token: String) { state.withLock { $0.rotated = token } }

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        state.withLock { state in
            state.calls += 1
            if let failure = state.failure { return ParsedRefreshResponse(verdict: .failed(failure)) }
            let tokens = TokenResponse(
                accessToken: Secret("access-\(state.calls)"),
                lifetime: .seconds(3600),
                type: "Bearer",
                scope: state.scope,
                rotated: state.rotated.map { Secret($0) }
            )
            return ParsedRefreshResponse(verdict: .granted(tokens), status: 200)
        }
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse { .done }
}

/// The grants that can be read immediately, as set by a test.
final class ImmediateGrants: Sendable {
    private let grants = Mutex<[String: Grant]>([:])

    func set(_ grant: Grant?) {
        guard let grant else { return }
        grants.withLock { $0[grant.userID] = grant }
    }

    func grant(ofUser userID: String) -> Grant? { grants.withLock { $0[userID] } }
}

/// The internal routes over a store, a scripted endpoint, and clocks that only a test advances.
struct VendingFixture {
    static let credential = "rwc_full"
    static let limitedCredential = "rwc_limited"
    static let operatorCredential = "rwc_operator"
    static let limitedOperatorCredential = "rwc_limited_operator"
    static let managingOperatorCredential = "rwc_managing_operator"
    static let managerCredential = "rwc_manager"
    static let limitedManagerCredential = "rwc_limited_manager"
    static let presentCredential = "rwc_present"
    static let gmail = "https://mail.google.com/"
    static let services = """
        {"services": [
          {"name": "full", "credential_sha256": "\(hash(of: credential))", "scopes": ["*"], "users": ["*"]},
          {"name": "limited", "credential_sha256": "\(hash(of: limitedCredential))", "scopes": ["\(gmail)"], "users": ["u/1"]},
          {"name": "assistant", "credential_sha256": "\(hash(of: presentCredential))", "scopes": ["*"], "users": "present"},
          {"name": "jane", "credential_sha256": "\(hash(of: operatorCredential))", "users": ["*"], "operator": true},
          {"name": "joe", "credential_sha256": "\(hash(of: limitedOperatorCredential))", "users": ["u/1"], "operator": true},
          {"name": "boss", "credential_sha256": "\(hash(of: managingOperatorCredential))", "users": ["*"], "operator": true, "manage": true},
          {"name": "admin", "credential_sha256": "\(hash(of: managerCredential))", "users": ["*"], "manage": true},
          {"name": "helper", "credential_sha256": "\(hash(of: limitedManagerCredential))", "users": ["u/1", "u/3", "v-5"], "manage": true}
        ]}
        """

    let time = ManualTime(immediateUpTo: .milliseconds(5))
    let endpoint = VendEndpoint()
    let audit = CapturedLines()
    let store: TestStore
    let vault: TokenVault
    let engine: RefreshEngine
    let counters: EventCounters
    let spans: SpanBuffer
    let phase = Shared(ServingPhase.starting)
    private let immediateGrants = ImmediateGrants()
    let metrics: MetricsLog
    let diagnostics: DiagnosticLog
    let log: EngineLog
    let services: ServiceDirectory
    let handler: TokenVendingHandler
    let random = SeededRandom(seed: 11)
    let signer: TokenSigner

    init(logLevel: LogLevel = .error, logDescriptor: Int32 = nowhere) throws {
        store = try TestStore(time: time, random: random)
        let ring = try KeyRing(keys: [RingKey.random()])
        vault = TokenVault(ring: try ReloadableKeyRing { ring })
        counters = EventCounters(time: time)
        spans = SpanBuffer(counters: counters, time: time, random: SeededRandom(seed: 12))
        metrics = MetricsLog(sink: audit, worker: "worker", time: time)
        diagnostics = DiagnosticLog(level: logLevel, time: time, descriptor: logDescriptor)
        log = EngineLog(metrics: metrics, diagnostics: diagnostics, counters: counters, spans: spans, time: time)
        services = ServiceDirectory(try ServiceList(parsing: Self.services.utf8))
        engine = RefreshEngine(
            store: store,
            endpoint: endpoint,
            vault: vault,
            configuration: EngineConfiguration(workerName: "worker"),
            time: time,
            random: random,
            log: log
        )
        signer = try TokenSigner(secrets: [Secret("the secret of the app's tokens, long enough")])
        handler = TokenVendingHandler(
            provider: TokenProvider(
                engine: engine,
                immediateRead: { [immediateGrants] user, _ in immediateGrants.grant(ofUser: user) }
            ),
            services: services,
            appTokens: AppTokens(signer: signer, store: store, time: time),
            log: log,
            time: time
        )
    }

    static let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)

    /// Limits the entries that end in `users`, as the services file has them, to the default connection of their users.
    func limitConnections(ofEntriesWith users: String) throws {
        let limited = Self.services.replacing("\(users)}", with: #"\#(users), "connections": ["default"]}"#)
        services.replace(try ServiceList(parsing: limited.utf8))
    }

    /// Limits the entries whose users are given so to these users, as JSON.
    func limitUsers(ofEntriesWith users: String, to names: String) throws {
        let limited = Self.services.replacing("\(users)}", with: #""users": [\#(names)], "operator": true}"#)
        services.replace(try ServiceList(parsing: limited.utf8))
    }

    static func hash(of credential: String) -> String {
        Digest.sha256(Array(credential.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Stores a grant as an import does: due immediately, with or without an access token.
    @discardableResult
    func add(
        user: String = "u/1",
        connection: ConnectionID = .default,
        scope: String = "openid \(VendingFixture.gmail)",
        accessToken: String? = "stored",
        lifetime: Duration = .seconds(3600),
        refreshToken: String? = "1//refresh"
    ) async throws -> GrantID {
        let id = GrantID.random(from: random)
        var incoming = IncomingTokens(clientID: "client", scope: scope)
        if let refreshToken {
            incoming.refreshToken = try vault.seal(refreshToken: Secret(refreshToken), for: id)
        }
        if let accessToken {
            incoming.accessToken = Grant.AccessToken(
                sealed: try vault.seal(accessToken: Secret(accessToken), for: id),
                obtainedAt: time.now,
                expiresAt: time.now + lifetime
            )
        }
        let (grant, _) = Grant.connected(
            id: id,
            userID: user,
            connection: connection,
            incoming: incoming,
            dueAt: time.now,
            at: time.now
        )
        try await store.transact { try $0.insert(grant) }
        return id
    }

    func change(user: String = "u/1", _ body: @escaping @Sendable (inout Grant) -> [GrantEvent]) async throws {
        try await store.transact { transaction in
            guard var grant = try transaction.grant(ofUser: user) else { throw VendingError.unknownGrant }
            _ = body(&grant)
            try transaction.update(grant)
        }
    }

    func send(
        _ query: [ServerRequest.Field] = [],
        user: String = "u/1",
        authorization: [String] = ["Bearer \(VendingFixture.credential)"]
    ) async -> ParsedResponse {
        let request = ServerRequest(
            method: "GET",
            path: "/v1/grants/\(user)/token",
            query: query,
            headers: authorization.map { (name: "authorization", value: $0) }
        )
        return ParsedResponse(await handler.token(for: request, userID: user))
    }

    /// Makes the grant, as it is stored now, immediately readable.
    func makeImmediatelyReadable(user: String = "u/1") async throws {
        immediateGrants.set(try await store.grant(ofUser: user))
    }

    func sendImmediate(
        _ query: [ServerRequest.Field] = [],
        user: String = "u/1",
        credential: String = VendingFixture.credential
    ) -> ParsedResponse? {
        let request = ServerRequest(
            method: "GET",
            path: "/v1/grants/\(user)/token",
            query: query,
            headers: [("Authorization", "Bearer \(credential)")]
        )
        return handler.immediateToken(for: request, userID: user).map(ParsedResponse.init)
    }

    func renew(_ body: String, user: String = "u/1") async -> ParsedResponse {
        let request = ServerRequest(
            method: "POST",
            path: "/v1/grants/\(user)/token/refresh",
            headers: [("Authorization", "Bearer \(Self.credential)")],
            body: Array(body.utf8)
        )
        return ParsedResponse(await handler.renewedToken(for: request, userID: user))
    }
}
