import Base
import Crypto
import GoogleOAuth
import HTTPClient
import Scheduler
import Storage
import Telemetry

/// The dependencies of the commands, opened from the configuration when they are needed.
struct CommandContext: Sendable {
    /// The configuration of the start, with the settings that reloads have changed.
    ///
    /// A reload replaces it as a whole, or not at all. Listeners, database and endpoints are opened once, so a reload
    /// does not change them.
    let current: Shared<Configuration>
    /// The inputs of the configuration, to resolve it again on SIGHUP.
    let inputs: ConfigurationInputs
    /// The clock for stored times: this machine's, or the database server's.
    let time: any TimeSource
    let random: any RandomSource = SystemRandom()
    let diagnostics: DiagnosticLog
    /// The name of this process in leases, in its report to other workers, and in log lines.
    let workerName: String

    /// The key ring that `--key-command` prints, if that is set. All parts of the process use one, so that it runs once.
    let commandedKeyRing: CommandedKeyRing?

    /// `time` replaces the clock of the database, in tests.
    init(configuration: Configuration, inputs: ConfigurationInputs, time: (any TimeSource)? = nil) {
        current = Shared(configuration)
        self.inputs = inputs
        self.time = time ?? configuration.database.clock
        diagnostics = DiagnosticLog(
            level: configuration.logLevel,
            // This machine's clock, like all other lines in its logs.
            time: SystemTime(),
            journalStream: inputs.environment["JOURNAL_STREAM"],
            located: DocumentFolder.current.located
        )
        commandedKeyRing = CommandedKeyRing(configuration, inputs: inputs, time: self.time)
        workerName = "\(ProcessSetup.id)-\(String(random.nextBits() >> 32, radix: 16))"
    }

    var configuration: Configuration { current.value }

    /// The file from which commands read the key ring.
    ///
    /// That of the service is the last choice: it cannot be written, and is older than `keyFile` after a rotation.
    var readableKeyFile: String { configuration.readableKeyFile }

    /// Opens the key ring. Blocks while `--key-command` runs for the first time.
    func openVault() throws -> TokenVault {
        let path = readableKeyFile
        if let commandedKeyRing {
            return TokenVault(
                ring: try ReloadableKeyRing(
                    name: "the key ring \(path)",
                    update: commandedKeyRing.update,
                    load: commandedKeyRing.latest
                )
            )
        }
        let isOfService = path == configuration.serviceKeyRing
        let credentials = isOfService ? Installation.credentials : inputs.credentialsDirectory
        do {
            return TokenVault(
                ring: try ReloadableKeyRing(name: "the key ring \(path)") {
                    try KeyRingFile.load(path: path, credentialsDirectory: credentials)
                }
            )
        } catch let error as FileError where error.kind == .missing {
            guard let database = configuration.database.file, try FileStatus.of(database) == nil,
                try LeftoverFiles.besideMissing(database).isEmpty
            else { throw error }
            throw CommandError(
                .configuration,
                """
                this is a first start: there is neither a database \(database) nor a key ring \(path). Make the ring first: \
                refresh-worker keys generate --key-file \(path)
                """
            )
        }
    }

    /// How a command that changes the key ring reads and writes its file, or `nil` if that is plain text.
    var keyWrapping: (any KeyRingWrapping)? { commandedKeyRing?.commands }

    /// Opens an HTTP client, by default with the limit for refreshes: the engine's in-flight limit and 64 more.
    func openHTTP(maximumInFlight: Int = EngineConfiguration.defaultMaximumInFlight + 64) throws -> HTTPClient {
        try checkAuthorities()
        var settings = HTTPClient.Configuration(maximumInFlight: maximumInFlight)
        settings.caFile = configuration.caFile
        settings.userAgent = "refresh-worker/\(Version.current)"
        return try HTTPClient(configuration: settings, time: time)
    }

    /// Refuses a file of authorities that cannot be used: libcurl would report it only at each request.
    func checkAuthorities() throws(CommandError) {
        guard let path = configuration.caFile else { return }
        let isDenied = !FileStatus.mayRead(path) && FileOwner(path) != nil
        let advice =
            isDenied
            ? FileOwner.advice(onDenied: path, mode: "644") : ": check the path, and let the worker's user read it"
        guard try read(path, for: "--ca-file", orElse: advice).firstRange(of: Array("CERTIFICATE-----".utf8)) != nil
        else {
            let problem = "--ca-file: \(path) holds no certificate in PEM: name the authority's certificate file"
            throw CommandError(.configuration, problem)
        }
    }

    /// Returns the location of a database's spill files.
    func spillLocation(of database: DatabaseLocation) -> SpillLocation {
        SpillLocation(of: database, keyFile: configuration.keyFile, environment: inputs.environment)
    }

    func openSpill(of database: DatabaseID, vault: TokenVault) -> ResultSpillFile {
        ResultSpillFile(
            of: database,
            at: spillLocation(of: configuration.database),
            worker: workerName,
            vault: vault
        )
    }

    func openEngine(
        store: any Store,
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

    /// Opens the file of the metrics log.
    func openMetricsWriter() throws -> LineWriter {
        do {
            return try LineWriter(to: configuration.metricsLog, time: time, diagnostics: diagnostics)
        } catch {
            throw CommandError(.cannotCreate, "the metrics log: \(error)")
        }
    }
}

extension Configuration {
    /// See ``CommandContext/readableKeyFile``.
    fileprivate var readableKeyFile: String {
        guard let passed = serviceKeyRing, !FileStatus.mayRead(keyFile) else { return keyFile }
        return passed
    }
}

extension CommandedKeyRing {
    /// Returns `nil` without a `--key-command`.
    fileprivate convenience init?(_ configuration: Configuration, inputs: ConfigurationInputs, time: any TimeSource) {
        guard let unwrapping = configuration.keyCommand else { return nil }
        // Root has given up its rights after `inputs` were gathered.
        let home = inputs.continuesAs == nil ? nil : ProcessSetup.environment["HOME"]
        let commands = KeyCommands(
            unwrapping: unwrapping,
            wrapping: configuration.keyWrapCommand,
            environment: CommandEnvironment.variables(from: inputs.environment, home: home)
        )
        self.init(path: configuration.readableKeyFile, commands: commands, time: time)
    }
}
