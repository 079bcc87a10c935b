import Glibc
import GoogleOAuth
import Status
import Storage
import Telemetry
import TestSupport

@testable import Base
@testable import Crypto
@testable import HTTPServer
@testable import Routes
@testable import Scheduler

/// The public routes over a store, a fake Google, and clocks that only a test advances.
struct AccountFixture {
    static let oldSecret = Secret("an older secret of more than thirty-two bytes")
    static let newSecret = Secret("the secret that signs now, also long enough")

    static let googleDeadline: Duration = .seconds(10)

    let time = ManualTime(immediateUpTo: .milliseconds(5))
    let random = SeededRandom(seed: 7)
    let google = FakeGoogle()
    let codes = FakeCodeEndpoint()
    let exchanges: CodeExchanges
    let store: TestStore
    let vault: TokenVault
    let engine: RefreshEngine
    let signer: TokenSigner
    let monitoring: MonitoringHandler
    let routes: PublicRoutes
    let router: Router
    let lines = CapturedLines()

    init(
        failuresPerMinute: Int = 1000,
        signInsPerMinute: Int = 1000,
        writesPerMinute: Int = 1000,
        connectionsPerUser: Int = 20,
        bindsTokens: Bool = false,
        bindingKey: RingKey? = nil,
        formerBindingKey: RingKey? = nil,
        emailLinking: EmailLinking = .verified,
        acceptFormerTokensUntil: Timestamp? = nil,
        appTokens: (AppTokens) throws -> AppTokens = { $0 },
        googleKeys: KeySetCache.Source = .file { throw CancellationError() },
        logLevel: LogLevel = .error,
        logDescriptor: Int32 = AccountFixture.nowhere
    ) throws {
        store = try TestStore(time: time, random: random, keepsNotices: true)
        let ring = try KeyRing(keys: [RingKey.random()] + [bindingKey, formerBindingKey].compactMap(\.self))
        vault = TokenVault(ring: try ReloadableKeyRing { ring })
        signer = try TokenSigner(secrets: [Self.newSecret, Self.oldSecret])
        let diagnostics = DiagnosticLog(level: logLevel, time: time, descriptor: logDescriptor)
        let metrics = MetricsLog(sink: lines, worker: "worker", time: time)
        let counters = EventCounters(time: time)
        let log = EngineLog(metrics: metrics, diagnostics: diagnostics, counters: counters, time: time)
        engine = RefreshEngine(
            store: store,
            endpoint: google,
            vault: vault,
            configuration: EngineConfiguration(workerName: "worker"),
            time: time,
            random: random,
            log: log
        )
        exchanges = CodeExchanges(
            client: { [codes] in codes.client },
            endpoint: codes,
            bindsTokens: bindsTokens,
            save: { [codes] in try await codes.save($0) },
            time: time
        )
        let dependencies = AppRoutes.Dependencies(
            store: store,
            engine: engine,
            google: google,
            vault: vault,
            tokens: try appTokens(AppTokens(signer: signer, store: store, time: time)),
            googleKeys: KeySetCache(googleKeys, http: try LoginKeys.http.get(), time: time),
            clientIDs: { ["456-second-app.apps.googleusercontent.com", FakeGoogle.clientID] },
            exchanges: exchanges,
            connectionsPerUser: connectionsPerUser,
            budgets: RequestBudgets(
                failuresPerMinute: failuresPerMinute,
                signInsPerMinute: signInsPerMinute,
                writesPerMinute: writesPerMinute,
                time: time
            ),
            emailLinking: emailLinking,
            acceptFormerTokensUntil: acceptFormerTokensUntil,
            time: time,
            random: random,
            log: log,
            googleDeadline: Self.googleDeadline
        )
        let status = LiveStatus(
            from: ObservedStatus { _ in .well },
            database: DatabaseReadiness(store: store, time: time),
            engine: engine,
            metrics: metrics,
            diagnostics: log.diagnostics,
            time: time
        )
        monitoring = MonitoringHandler(
            name: "worker",
            version: "1.0",
            status: status,
            engine: engine,
            counters: counters,
            log: log,
            metrics: MetricsSource(
                version: "1.0",
                status: status,
                engine: engine,
                counters: counters,
                metricsLog: metrics,
                time: time
            ),
            phase: Shared(.starting),
            time: time,
            stalledLoops: { [] }
        )
        routes = PublicRoutes(
            dependencies,
            verify: { _ throws(SecurityEventError) in throw .unavailable(retryAfter: .seconds(60)) },
            monitoring: monitoring
        )
        router = routes.router
    }

    static let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)

    // MARK: Sending requests

    func send(
        _ method: String,
        _ path: String,
        token: String? = nil,
        json: String? = nil,
        form: String? = nil,
        headers: [ServerRequest.Field] = [],
        declaringLength: Bool = true,
        from address: String = "192.0.2.1"
    ) async throws -> ParsedResponse {
        var headers = headers
        let body = Array((json ?? form ?? "").utf8)
        if declaringLength { headers.append(("Content-Length", "\(body.count)")) }
        if let token { headers.append(("Authorization", "Bearer \(token)")) }
        if json != nil { headers.append(("Content-Type", "application/json")) }
        if form != nil { headers.append(("content-type", "Application/X-WWW-Form-Urlencoded; charset=utf-8")) }
        let request = ServerRequest(
            method: method,
            path: path,
            headers: headers,
            body: body,
            peerAddress: address
        )
        guard case .respond(let response) = await router.answer(request) else { throw MissingResponse() }
        return ParsedResponse(response)
    }

    struct MissingResponse: Error {}

    /// Posts Google's tokens as the app does.
    func connect(
        _ accessToken: String,
        refreshToken: String? = nil,
        user: String = "42",
        fields: String = ""
    ) async throws -> ParsedResponse {
        let refreshToken = refreshToken.map { #","refresh_token":"\#($0)""# } ?? ""
        return try await send(
            "POST",
            "/v1/auth/gmail-tokens",
            token: token(ofUser: user),
            json: #"{"access_token":"\#(accessToken)"\#(refreshToken)\#(fields)}"#
        )
    }

    // MARK: The app's own tokens

    /// Returns a token of PayPulse's login.
    func token(ofUser id: String, email: String? = "jane@example.com") -> String {
        sign { claims in
            claims.field("user_id", id)
            if let email { claims.field("email", email) }
        }
    }

    func sign(
        lifetime: Duration = .seconds(86_400),
        by signer: TokenSigner? = nil,
        _ body: (inout JSONLine) -> Void
    ) -> String {
        var claims = JSONLine()
        body(&claims)
        claims.field("iat", time.now.milliseconds / 1000)
        claims.field("exp", (time.now + lifetime).milliseconds / 1000)
        return (signer ?? self.signer).sign(claims).reveal()
    }

    /// Signs in with Google and returns both tokens.
    func signIn(_ googleToken: String = "ya29.jane") async throws -> (access: String, refresh: String) {
        let response = try await send("POST", "/api/auth/mobile/google", json: #"{"access_token":"\#(googleToken)"}"#)
        guard let access = response["access_token"]?.string, let refresh = response["refresh_token"]?.string else {
            throw MissingResponse()
        }
        return (access, refresh)
    }

    func refresh(_ token: String) async throws -> ParsedResponse {
        try await send("POST", "/api/auth/refresh", json: #"{"refresh_token":"\#(token)"}"#)
    }

    // MARK: Stored data

    func grant(ofUser user: String = "42") async throws -> Grant? { try await store.grant(ofUser: user) }

    func refreshToken(ofUser user: String = "42") async throws -> String? {
        try await grant(ofUser: user).flatMap { try vault.openRefreshToken(of: $0)?.reveal() }
    }

    func accessToken(ofUser user: String = "42") async throws -> String? {
        try await grant(ofUser: user).flatMap { try vault.openAccessToken(of: $0)?.reveal() }
    }

    /// Stores a grant as an import does.
    func importGrant(
        ofUser user: String = "42",
        connection: ConnectionID = .default,
        owner: Grant.Owner = Grant.Owner(),
        refreshToken: String? = "1//imported",
        clientID: String = FakeGoogle.clientID
    ) async throws {
        let id = GrantID.random(from: random)
        var incoming = IncomingTokens(clientID: clientID, owner: owner, scope: "openid")
        if let refreshToken {
            incoming.refreshToken = try vault.seal(refreshToken: Secret(refreshToken), for: id)
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
    }

    func change(
        ofUser user: String = "42",
        connection: ConnectionID = .default,
        _ body: @escaping @Sendable (inout Grant) -> Void
    ) async throws {
        try await store.transact { transaction in
            let stored = try transaction.grant(ofUser: user, connection: connection)
            guard var grant = stored else { throw MissingResponse() }
            body(&grant)
            try transaction.update(grant)
        }
    }
}
