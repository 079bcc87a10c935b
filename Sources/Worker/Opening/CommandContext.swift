package import Base
import Crypto
import GoogleOAuth
package import HTTPClient
package import Scheduler
package import Storage
package import Telemetry

/// The dependencies of the commands, opened from the configuration when they are needed.
package struct CommandContext: Sendable {
    /// The configuration, of which a reload replaces some settings.
    let current: CurrentConfiguration
    /// The inputs of the configuration, to resolve it again on SIGHUP.
    package let inputs: ConfigurationInputs
    /// The clock for stored times: this machine's, or the database server's.
    package let time: any TimeSource
    package let random: any RandomSource = SystemRandom()
    package let diagnostics: DiagnosticLog
    /// The name of this process in leases, in its report to other workers, and in log lines.
    package let workerName: String

    /// `time` replaces the clock of the database, in tests.
    package init(configuration: Configuration, inputs: ConfigurationInputs, time: (any TimeSource)? = nil) {
        current = CurrentConfiguration(configuration)
        self.inputs = inputs
        self.time = time ?? Self.clock(of: configuration.database)
        diagnostics = DiagnosticLog(
            level: configuration.logLevel,
            // This machine's clock, like all other lines in its logs.
            time: SystemTime(),
            journalStream: inputs.environment["JOURNAL_STREAM"]
        )
        workerName = "\(ProcessIdentity.number)-\(String(random.nextBits() >> 32, radix: 16))"
    }

    /// The configuration at this moment.
    package var configuration: Configuration { current.value }

    package func openVault() throws -> TokenVault {
        let path = configuration.keyFile
        let credentials = inputs.environment[Setting.credentialsDirectoryName]
        return TokenVault(
            ring: try ReloadableKeyRing(name: "the key ring \(path)") {
                try KeyRingFile.load(path: path, credentialsDirectory: credentials)
            }
        )
    }

    /// Opens the client for refreshes and notices; its limit is the engine's in-flight limit and 64 more.
    package func openHTTP(maximumInFlight: Int = EngineConfiguration.defaultMaximumInFlight + 64) throws -> HTTPClient {
        try openHTTP(HTTPClient.Configuration(maximumInFlight: maximumInFlight))
    }

    /// Opens a client with limits of its own, the configured authorities and the program's name.
    package func openHTTP(_ limits: HTTPClient.Configuration) throws -> HTTPClient {
        var settings = limits
        try checkAuthorities()
        settings.caFile = configuration.caFile
        settings.userAgent = "refresh-worker/\(Version.current)"
        return try HTTPClient(configuration: settings, time: time)
    }

    /// Refuses a file of authorities that cannot be used: libcurl would report it only at each request.
    package func checkAuthorities() throws(CommandFailure) {
        guard let path = configuration.caFile else { return }
        let content: [UInt8]
        do throws(FileReader.Failure) {
            content = try inputs.files.read(path)
        } catch {
            let code: ExitCode = error.mayPass ? .inputOutput : .configuration
            let advice = "check the path, and let the worker's user read it"
            throw CommandFailure(code, "--ca-file: \(path) \(error.reason): \(advice)")
        }
        guard content.firstRange(of: Array("CERTIFICATE-----".utf8)) != nil else {
            let problem = "--ca-file: \(path) holds no certificate in PEM: name the authority's certificate file"
            throw CommandFailure(.configuration, problem)
        }
    }

    /// Returns the location of a database's spill files.
    package func spillLocation(of database: DatabaseLocation) -> SpillLocation {
        SpillLocation(of: database, keyFile: configuration.keyFile, environment: inputs.environment)
    }

    package func openSpill(vault: TokenVault) -> ResultSpillFile {
        ResultSpillFile(at: spillLocation(of: configuration.database), worker: workerName, vault: vault)
    }

    package func openEngine(
        store: any GrantStore,
        vault: TokenVault,
        http: HTTPClient,
        log: EngineLog,
        spill: ResultSpillFile,
        clientSecrets: ClientSecretFile
    ) -> RefreshEngine {
        RefreshEngine(
            store: store,
            endpoint: GoogleOAuthAPI(http: http, endpoints: configuration.endpoints),
            vault: vault,
            configuration: EngineConfiguration(
                workerName: workerName,
                maxRate: configuration.maxRate,
                clientSecrets: clientSecrets.secrets
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
    package func quietLog() -> EngineLog {
        EngineLog(
            metrics: MetricsLog(sink: SilentSink(), worker: workerName, time: time),
            diagnostics: diagnostics,
            counters: IntervalCounters(time: time),
            time: time
        )
    }
}
