import Base
import Crypto
import Foundation
import OpenTelemetry
import Status
import Storage
import Synchronization
import Telemetry

@testable import GoogleOAuth
@testable import HTTPClient
@testable import HTTPServer
@testable import RefreshWorker
@testable import Routes
@testable import Scheduler

/// A worker with all of its parts, as a configuration file starts it, and without its loops.
struct StartedWorker {
    private let root: String
    let worker: Worker
    let dependencies: AppRoutes.Dependencies
    let reader: SecurityEventReader

    /// Starts a worker with the settings of a file in the fixture's folder, and stops it after `body`.
    static func with<Result>(
        _ settings: [Setting.Name: String],
        file: String = "worker.conf",
        in fixture: OperatorFixture,
        _ body: (StartedWorker) async throws -> Result
    ) async throws -> Result {
        try write(settings, to: file, in: fixture)
        let flags = [ConfigurationInputs.Flag(name: .config, value: fixture.path(file))]
        let inputs = ConfigurationInputs(flags: flags, environment: [:], files: .system)
        let context = CommandContext(configuration: try Configuration(inputs), inputs: inputs)
        let notifier = SystemdNotifier(environment: [:], processID: ProcessSetup.id)
        var worker = try await Daemon(context, notifier: notifier).openWorker()
        try await worker.openListeners()
        let result: Swift.Result<Result, any Error>
        do {
            result = .success(try await body(try StartedWorker(worker, root: fixture.root)))
        } catch {
            result = .failure(error)
        }
        _ = await worker.listeners?.drain(within: .zero)
        await worker.listeners?.stop(within: .zero)
        worker.http.shutDown()
        await worker.store.close()
        return try result.get()
    }

    /// Writes the configuration file: settings that every fixture has, and these.
    static func write(
        _ settings: [Setting.Name: String],
        to file: String = "worker.conf",
        in fixture: OperatorFixture
    ) throws {
        let defaults: [Setting.Name: String] = [
            .keyFile: "ROOT/keys", .database: "ROOT/grants.sqlite", .metricsLog: "ROOT/metrics.jsonl",
            .clientID: "1234-first.apps.googleusercontent.com", .jwtSecretFile: "ROOT/secret", .logLevel: "error",
        ]
        let lines = defaults.merging(settings) { $1 }.map { "\($0.environmentName)=\($1)\n" }
        try fixture.write(lines.joined().replacing("ROOT", with: fixture.root), to: file)
    }

    private init(_ worker: Worker, root: String) throws {
        self.root = root
        self.worker = worker
        let tokens = try worker.context.openAppTokens(store: worker.store)
        dependencies = HTTPListeners.appDependencies(worker, lookups: worker.http, tokens: tokens)
        reader = HTTPListeners.securityEventReader(worker.context, lookups: worker.http)
    }

    /// Returns the value of a setting in each part that uses it; a new setting does not compile without its parts.
    ///
    /// The scenario `lifecycle` shows that the loops use the interval of summaries and the deadline of a stop.
    func uses(_ name: Setting.Name) async throws -> [String] {
        let configuration = worker.context.configuration
        switch name {
        case .config, .summaryInterval: return ["\(configuration.summaryInterval)"]
        case .database: return [try names(ending: ".sqlite")]
        case .keyFile: return ["\(worker.vault.ring.current.sealingKeyID)"]
        case .keyCommand: return ["\(worker.vault.ring.current.sealingKeyID)"]
        case .keyWrapCommand:
            let commands = worker.context.commandedKeyRing?.commands
            return [commands?.wrapping?.words.joined(separator: " ") ?? "none"]
        case .clientID:
            let status = try await worker.context.status(from: worker.store).snapshot()
            let clientIDs = [dependencies.clientIDs, reader.clientIDs(), status.clients.map(\.id)]
            return clientIDs.map { $0.joined(separator: " ") }
        case .clientSecretFile:
            let secret = await worker.engine.dispatcher.clientSecrets[configuration.clientIDs[0]]
            return [secret?.secret.reveal() ?? "none"]
        case .serverClientID:
            let status = try await worker.context.status(from: worker.store).snapshot()
            return [
                HTTPListeners.codeExchanges(worker).client()?.id ?? "none", reader.clientIDs().joined(separator: " "),
                status.clients.map(\.id).joined(separator: " "),
            ]
        case .bindTokens: return ["\(HTTPListeners.codeExchanges(worker).bindsTokens)"]
        case .tokenEndpoint: return await endpoints("refreshPattern")
        case .userinfoEndpoint: return await endpoints("userinfo")
        case .tokeninfoEndpoint: return await endpoints("tokeninfoPattern")
        case .revocationEndpoint: return await endpoints("revocationPattern")
        case .caFile:
            return [stored("configuration", in: worker.http, as: HTTPClient.Configuration.self)?.caFile ?? "none"]
        case .metricsLog: return [try names(ending: ".jsonl")]
        case .logSample: return ["\(worker.log.routineRefreshes.withLock { $0.interval })"]
        case .logLevel: return ["\(worker.context.diagnostics.level)"]
        case .maxRate:
            // The engine's, and the one of the status report.
            return ["\(await worker.engine.configuration.maxRate)", "\(configuration.maxRate)"]
        case .otlpEndpoint:
            return [worker.context.openTelemetrySettings.metricsEndpoint?.url ?? "none"]
        case .stopDeadline: return ["\(configuration.stopDeadline)"]
        case .forgetEndedAfter: return [configuration.forgetEndedAfter.map { "\($0)" } ?? "never"]
        case .runOnce: return ["\(configuration.runsOnce)"]
        case .listen: return [worker.listeners?.publicListener == nil ? "closed" : "listens"]
        case .listenInternal: return [try names(ending: ".sock")]
        case .internalCertificate, .internalKey, .jwtSecretFile, .servicesFile, .noticeSecretFile: return ["readable"]
        case .internalMetrics: return ["\(HTTPListeners.exposure(configuration, hasTLS: true))"]
        case .socketMode:
            let attributes = try FileManager.default.attributesOfItem(atPath: root + "/internal.sock")
            return [String((attributes[.posixPermissions] as? Int ?? 0) & 0o777, radix: 8)]
        case .trustedProxy:
            let proxies = worker.listeners?.publicListener?.server.trustedProxies ?? .none
            let blocks = Mirror(reflecting: proxies).descendant("blocks").map { Mirror(reflecting: $0).children.count }
            return ["\(blocks ?? 0) proxy"]
        case .googleCallsPerMinute:
            let budget = stored("failures", in: dependencies.budgets, as: AddressBudget.self)
            let microseconds = budget.flatMap { stored("interval", in: $0, as: Int64.self) } ?? 0
            return ["one every \(microseconds / 1_000_000) s"]
        case .connectionsPerUser: return ["\(dependencies.connectionsPerUser)"]
        case .linkByEmail: return [dependencies.emailLinking.rawValue]
        case .sessionGrace: return ["\(dependencies.sessionGrace)"]
        case .acceptFormerRefreshTokensUntil:
            return [dependencies.acceptFormerTokensUntil.map { "\($0)" } ?? "never"]
        case .securityEventsEndpoint:
            guard case .configuration(let endpoint) = await reader.keys.source else { return ["none"] }
            return [endpoint.url]
        case .googleKeysEndpoint:
            guard case .keys(let endpoint) = await dependencies.googleKeys.source else { return ["none"] }
            return [endpoint.url]
        case .appKeys:
            guard case .keys(let endpoint)? = await dependencies.tokens.keySets.first?.source else { return ["none"] }
            return [endpoint.url]
        case .appIssuer: return [dependencies.tokens.issuer ?? "none"]
        case .appAudience: return [dependencies.tokens.audience ?? "none"]
        case .appUserClaim: return [dependencies.tokens.userClaim]
        case .expiryNotice: return [worker.notices.map { "\($0.expiryNotice)" } ?? "no notices"]
        case .noticeURL:
            let keeps = stored("keepsNotices", in: worker.store, as: Bool.self) ?? false
            return [keeps ? worker.notices?.endpoint.url ?? "none" : "not kept"]
        }
    }

    /// Returns an endpoint as the engine and the routes have it.
    private func endpoints(_ label: String) async -> [String] {
        let google = await worker.engine.dispatcher.endpoint
        return [google as Any, dependencies.google as Any].map { google in
            let pattern = stored(label, in: google, as: RequestPattern.self)?.endpoint
            return (pattern ?? stored(label, in: google, as: Endpoint.self))?.url ?? "none"
        }
    }

    private func names(ending suffix: String) throws -> String {
        let names = try FileManager.default.contentsOfDirectory(atPath: root).filter { $0.hasSuffix(suffix) }
        return names.sorted().map { "\(root)/\($0)" }.joined(separator: " ")
    }

    /// Returns a private property of a part from another module.
    private func stored<Value>(_ label: String, in part: Any, as type: Value.Type) -> Value? {
        Mirror(reflecting: part).children.first { $0.label == label }?.value as? Value
    }
}
