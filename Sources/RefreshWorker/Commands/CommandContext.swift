import Clocks
import GoogleOAuth
import HTTPClient
import JSON
import Observability
import RefreshEngine
import Secrets
import Store

/// The dependencies of the commands, opened from the configuration when they are needed.
struct CommandContext: Sendable {
    /// The configuration, of which a reload replaces some settings.
    let current: CurrentConfiguration
    /// The inputs of the configuration, to resolve it again on SIGHUP.
    let inputs: ConfigurationInputs
    /// The clock for stored times: this machine's, or the database server's.
    let time: any TimeSource
    let random: any RandomSource = SystemRandom()
    let diagnostics: DiagnosticLog
    /// The name of this process in leases, in its report to other workers, and in log lines.
    let workerName: String

    init(configuration: Configuration, inputs: ConfigurationInputs) {
        current = CurrentConfiguration(configuration)
        self.inputs = inputs
        time = Self.clock(of: configuration.database)
        diagnostics = DiagnosticLog(
            level: configuration.logLevel,
            // This machine's clock, like all other lines in its logs.
            time: SystemTime(),
            journalStream: inputs.environment["JOURNAL_STREAM"]
        )
        workerName = "\(ProcessIdentity.number)-\(String(random.nextBits() >> 32, radix: 16))"
    }

    /// The configuration at this moment.
    var configuration: Configuration { current.value }

    func run(_ command: Command) async throws -> ExitCode {
        do {
            return try await perform(command)
        } catch let error as StoreError {
            throw await Self.confirmed(error)
        }
    }

    private func perform(_ command: Command) async throws -> ExitCode {
        switch command {
        case .work where configuration.runsOnce: try await workOnce()
        case .work: try await Daemon(context: self).run()
        case .vendToken(let user, let minimumLifetime): try await vendToken(of: user, minimumLife: minimumLifetime)
        case .disconnectGrant(let user): try await disconnect(user)
        case .generateKeys: try await generateKeys()
        case .listKeys: try await listKeys()
        case .rotateKeys: try await rotateKeys()
        case .retireKey(let id, let isLost): try await retireKey(id, isLost: isLost)
        case .replayNotices(let user, let span): try await replayNotices(of: user, within: span)
        case .manageGoogleEvents(let order): try await manageGoogleEvents(order)
        case .makeCredential(let service): try makeCredential(of: service)
        case .showStatus(let isJSON): try await showStatus(asJSON: isJSON)
        case .examine: try await examine()
        case .backUp(let file): try await backUp(to: file)
        case .copyStore(let source, let target): try await copyStore(from: source, to: target)
        case .recoverResults(let file): try await recoverResults(from: file)
        case .importGrants(let file, let replaces, let isDryRun):
            try await importGrants(from: file, replacesExisting: replaces, isDryRun: isDryRun)
        case .importSecrets(let order): try await importSecrets(order)
        case .importUsers(let order): try await importUsers(order)
        case .exportGrants(let isPlaintext): try await exportGrants(isPlaintext: isPlaintext)
        case .listGrants(let state, let isJSON): try await listGrants(inState: state, isJSON: isJSON)
        case .showGrant(let user, let isJSON): try await showGrant(of: user, isJSON: isJSON)
        case .addGrant(let user, let tokenFile, let clientID):
            try await addGrant(of: user, tokenFile: tokenFile, clientID: clientID)
        case .showVersion, .showHelp: .success
        }
    }

    // MARK: Opening

    func openVault() throws -> TokenVault {
        let path = configuration.keyFile
        let credentials = inputs.environment[Setting.credentialsDirectoryName]
        return TokenVault(
            ring: try ReloadableKeyRing(name: "the key ring \(path)") {
                try KeyRingFile.load(path: path, credentialsDirectory: credentials)
            }
        )
    }

    /// Opens the client for refreshes and notices; its limit is the engine's in-flight limit and 64 more.
    func openHTTP(maximumInFlight: Int = EngineConfiguration.usualMostInFlight + 64) throws(HTTPFailure) -> HTTPClient {
        try openHTTP(HTTPClient.Configuration(maximumInFlight: maximumInFlight))
    }

    /// Opens a client with limits of its own, the configured authorities and the program's name.
    func openHTTP(_ limits: HTTPClient.Configuration) throws(HTTPFailure) -> HTTPClient {
        var settings = limits
        settings.caFile = configuration.caFile
        settings.userAgent = "refresh-worker/\(Version.current)"
        return try HTTPClient(configuration: settings, time: time)
    }

    /// Returns the place of a database's spill files.
    func spillPlace(of database: DatabaseLocation) -> SpillLocation {
        SpillLocation(of: database, keyFile: configuration.keyFile, environment: inputs.environment)
    }

    func openSpill(vault: TokenVault) -> ResultSpillFile {
        ResultSpillFile(at: spillPlace(of: configuration.database), worker: workerName, vault: vault)
    }

    func openEngine(
        store: any GrantStore,
        vault: TokenVault,
        http: HTTPClient,
        log: EngineLog,
        spill: ResultSpillFile
    ) throws -> RefreshEngine {
        let clientSecrets = try Self.clientSecrets(of: configuration)
        return RefreshEngine(
            store: store,
            endpoint: GoogleOAuthAPI(http: http, endpoints: configuration.endpoints),
            vault: vault,
            configuration: EngineConfiguration(
                workerName: workerName,
                maxRate: configuration.maxRate,
                clientSecrets: clientSecrets
            ),
            time: time,
            random: random,
            log: log,
            spill: spill
        )
    }

    /// Opens the metrics log and the counters for its summaries.
    func openMetrics() throws -> (writer: LineWriter, log: MetricsLog, counters: IntervalCounters) {
        let destination: LineDestination =
            switch configuration.metricsLog {
            case .standardOutput: .standardOutput
            case .file(let path): .file(path)
            }
        let writer: LineWriter
        do {
            writer = try LineWriter(to: destination, time: time, diagnostics: diagnostics)
        } catch {
            throw CommandFailure(.cannotCreate, "the metrics log: \(error)")
        }
        return (writer, MetricsLog(sink: writer, worker: workerName, time: time), IntervalCounters(time: time))
    }

    /// Returns an engine log for commands that print their own answer to standard output: it writes only diagnostics.
    func quietLog() -> EngineLog {
        EngineLog(
            metrics: MetricsLog(sink: SilentSink(), worker: workerName, time: time),
            diagnostics: diagnostics,
            counters: IntervalCounters(time: time),
            time: time
        )
    }
}

/// A sink for commands without a metrics log.
private struct SilentSink: LineSink {
    let droppedLines = 0

    func write(_ line: JSONLine) -> Bool { false }
}
