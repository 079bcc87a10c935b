import Storage
import Telemetry
import TestSupport

@testable import Base
@testable import Crypto
@testable import GoogleOAuth
@testable import Scheduler

/// Engines over one store, with a token endpoint that a closure implements.
struct RunningEngineFixture {
    let time = ManualTime(immediateUpTo: .milliseconds(15))
    let store: TestStore
    let vault: TokenVault
    let engine: RefreshEngine
    private let endpoint: any Google

    init(
        maximumInFlight: Int = 64,
        clientSecrets: [String: Secret] = [:],
        answering answer: @escaping @Sendable (OAuthClientCredentials) async -> ParsedRefreshResponse
    ) throws {
        try self.init(
            maximumInFlight: maximumInFlight,
            clientSecrets: clientSecrets,
            endpoint: ScriptedEndpoint(answer: answer)
        )
    }

    init(
        maximumInFlight: Int = 64,
        clientSecrets: [String: Secret] = [:],
        bindingKey: RingKey? = nil,
        endpoint: any Google
    ) throws {
        store = try TestStore(time: time, random: SeededRandom(seed: 1))
        let ring = try KeyRing(keys: [RingKey.random()] + [bindingKey].compactMap(\.self))
        vault = TokenVault(ring: try ReloadableKeyRing { ring })
        self.endpoint = endpoint
        engine = Self.engine(over: store, vault, endpoint, time, maximumInFlight, clientSecrets)
    }

    func health(of client: String) async throws -> ClientHealth {
        ClientHealth(stored: try await store.clientHealth()[client], epoch: "")
    }

    /// Returns the engine of another process.
    func anotherEngine() -> RefreshEngine {
        Self.engine(over: store, vault, endpoint, time, 64, [:])
    }

    private static func engine(
        over store: any Store,
        _ vault: TokenVault,
        _ endpoint: any Google,
        _ time: ManualTime,
        _ maximumInFlight: Int,
        _ clientSecrets: [String: Secret]
    ) -> RefreshEngine {
        RefreshEngine(
            store: store,
            endpoint: endpoint,
            vault: vault,
            configuration: EngineConfiguration(
                workerName: "fixture",
                clientSecrets: clientSecrets,
                maximumInFlight: maximumInFlight
            ),
            time: time,
            random: SeededRandom(seed: 1),
            log: EngineLog(
                metrics: MetricsLog(sink: NoLines(), worker: "fixture", time: time),
                diagnostics: DiagnosticLog(level: .error, time: time, descriptor: -1),
                counters: EventCounters(time: time),
                time: time
            )
        )
    }

    /// Adds grants of one client that are overdue by `span`.
    func add(
        _ numbers: ClosedRange<Int64>,
        of client: String,
        overdueSince span: Duration,
        boundTo bindingKeyID: KeyID? = nil,
        sealedBy other: TokenVault? = nil
    ) async throws {
        let vault = other ?? vault
        let grants = try numbers.map { number in
            let id = GrantID(rawValue: number)
            return Grant.connected(
                id: id,
                userID: "user \(number)",
                incoming: IncomingTokens(
                    clientID: client,
                    refreshToken: try vault.seal(refreshToken: Secret("refresh"), for: id, boundTo: bindingKeyID)
                ),
                dueAt: time.now - span,
                at: time.now
            ).grant
        }
        try await store.transact { transaction in
            for grant in grants { try transaction.insert(grant) }
        }
    }

    func grant(_ number: Int64) async throws -> Grant? {
        try await store.grant(GrantID(rawValue: number))
    }

    /// Runs the engine's loop once, and waits until all its refreshes have ended.
    func runLoopIteration() async {
        _ = await engine.runLoopIteration()
        await engine.waitUntilNothingIsInFlight()
    }
}

private struct ScriptedEndpoint: AnsweringEndpoint {
    let answer: @Sendable (OAuthClientCredentials) async -> ParsedRefreshResponse

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        await answer(client)
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse { .done }
}

private struct NoLines: LineSink {
    var droppedLines: Int { 0 }

    func write(_ line: JSONLine) -> Bool { false }
}

extension ParsedRefreshResponse {
    /// A good answer.
    static var good: ParsedRefreshResponse {
        ParsedRefreshResponse(
            verdict: .granted(
                TokenResponse(
                    accessToken: Secret("access"),
                    lifetime: .seconds(3600),
                    type: "Bearer",
                    scope: nil,
                    rotated: nil,
                    refreshTokenLifetime: nil
                )
            )
        )
    }
}
