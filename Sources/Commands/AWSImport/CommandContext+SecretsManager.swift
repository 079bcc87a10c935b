import Base
import HTTPClient
import Storage
import Telemetry
package import Worker

/// `grants import --from aws-secrets-manager`: imports grants that a backend kept in AWS Secrets Manager.
extension CommandContext {
    package func importSecrets(_ options: SecretsManagerOptions) async throws -> ExitCode {
        let endpoint: Endpoint
        do throws(EndpointError) {
            endpoint = try Endpoint(options.url)
        } catch {
            throw CommandFailure(.configuration, "--aws-endpoint: \(error)")
        }
        let credentials = try AWSCredentials.read(file: options.credentialsFile, environment: inputs.environment)
        let vault = try openVault()
        let http = try openSecretsHTTP()
        defer { http.shutDown() }
        let client = SecretsManagerClient(
            http: http,
            endpoint: endpoint,
            region: options.region,
            credentials: credentials,
            random: random,
            pause: { [time] in try await time.sleep(for: $0) }
        )
        let clientID: String
        do {
            clientID =
                configuration.clientIDs.count == 1
                ? configuration.clientIDs[0] : try await SecretsManagerReader.clientID(from: client)
        } catch let fault as SecretsManagerFault {
            throw fault.failure(for: options)
        }
        let reader = SecretsManagerReader(client: client, prefix: options.prefix, clientIDs: [clientID], time: time)
        let store = try await openStore(forDryRun: options.isDryRun)
        let heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: workerName,
            diagnostics: diagnostics
        )
        try await heartbeat.report()
        let reporting = Task { await heartbeat.run(by: time) {} }
        let outcome = await importGrants(options, secrets: reader, into: store, vault: vault)
        reporting.cancel()
        await reporting.value
        await heartbeat.leave()
        await store.close()
        return try outcome.get()
    }

    private func importGrants(
        _ options: SecretsManagerOptions,
        secrets: SecretsManagerReader,
        into store: any GrantStore,
        vault: TokenVault
    ) async -> Result<ExitCode, any Error> {
        let progress = TerminalProgress(to: .error)
        let report = { (line: String) in
            progress.clear()
            Output.error.line("refresh-worker: \(line)")
        }
        let reportsDetails = configuration.logLevel >= .info
        var grants = SecretsManagerImport(
            secrets: secrets,
            writer: ImportedGrantWriter(
                store: store,
                vault: vault,
                time: time,
                random: random,
                existing: options.replacesExisting ? .replaceOlder : .keep,
                isDryRun: options.isDryRun
            ),
            report: report,
            detail: { if reportsDetails { report($0) } }
        )
        var failure: CommandFailure?
        do {
            try await grants.run { progress.show($0.sentence(isDryRun: options.isDryRun)) }
        } catch let fault as SecretsManagerFault {
            failure = fault.failure(for: options)
        } catch {
            failure = CommandFailure(error)
        }
        let tally = grants.tally
        tally.grants.summaryOfReasons.forEach(report)
        report("\(tally.sentence(isDryRun: options.isDryRun)), under \(options.prefix) in \(options.region)")
        if options.isJSON {
            var line = tally.grants.json
            line.field("deleted", tally.deleted)
            Output.standard.line(line.bytes)
        }
        guard let failure else { return .success(tally.grants.bad == 0 ? .success : .badData) }
        guard tally.all > 0 else { return .failure(failure) }
        let advice = """
            the import stopped there; start the same import again to continue: it does not read the secrets of stored \
            users
            """
        return .failure(CommandFailure(failure.exitCode, "\(failure.message)\n\(advice)"))
    }

    private func openSecretsHTTP() throws -> HTTPClient {
        var settings = HTTPClient.Configuration()
        settings.maximumBodyBytes = SecretsManagerClient.responseLimit
        settings.maximumConnections = SecretsManagerReader.concurrency
        settings.maximumInFlight = SecretsManagerReader.concurrency
        return try openHTTP(settings)
    }
}
