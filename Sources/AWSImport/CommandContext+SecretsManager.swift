import Clocks
import HTTPClient
import Observability
import Store
import WorkerCommands
package import WorkerConfiguration
import WorkerLifecycle

/// `grants import --from aws-secrets-manager`: imports grants that a backend kept in AWS Secrets Manager.
extension CommandContext {
    package func importSecrets(_ order: SecretsManagerOptions) async throws -> ExitCode {
        let endpoint: Endpoint
        do throws(EndpointError) {
            endpoint = try Endpoint(order.url)
        } catch {
            throw CommandFailure(.configuration, "--aws-endpoint: \(error)")
        }
        let credentials = try AWSCredentials.read(file: order.credentialsFile, environment: inputs.environment)
        let vault = try openVault()
        let http = try openSecretsHTTP()
        defer { http.shutDown() }
        let client = SecretsManagerClient(
            http: http,
            endpoint: endpoint,
            region: order.region,
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
            throw fault.failure(for: order)
        }
        let reader = SecretsManagerReader(client: client, prefix: order.prefix, clientIDs: [clientID], time: time)
        let store = try await openStore(forDryRun: order.isDryRun)
        let presence = WorkerHeartbeat(store: store, ring: vault.ring, workerName: workerName, diagnostics: diagnostics)
        try await presence.report()
        let reporting = Task { await presence.run(by: time) {} }
        let outcome = await bringIn(order, secrets: reader, into: store, vault: vault)
        reporting.cancel()
        await reporting.value
        await presence.leave()
        await store.close()
        return try outcome.get()
    }

    private func bringIn(
        _ order: SecretsManagerOptions,
        secrets: SecretsManagerReader,
        into store: any GrantStore,
        vault: TokenVault
    ) async -> Result<ExitCode, any Error> {
        let progress = TerminalProgress(to: .error)
        let tell = { (line: String) in
            progress.clear()
            Output.error.line("refresh-worker: \(line)")
        }
        let tellsAll = configuration.logLevel >= .info
        var grants = SecretsManagerImport(
            secrets: secrets,
            intake: ImportedGrantWriter(
                store: store,
                vault: vault,
                time: time,
                random: random,
                existing: order.replacesExisting ? .replaceOlder : .keep,
                isDryRun: order.isDryRun
            ),
            report: tell,
            detail: { if tellsAll { tell($0) } }
        )
        var failure: CommandFailure?
        do {
            try await grants.run { progress.show($0.sentence(isDryRun: order.isDryRun)) }
        } catch let fault as SecretsManagerFault {
            failure = fault.failure(for: order)
        } catch {
            failure = CommandFailure(error)
        }
        let tally = grants.tally
        tally.grants.reasonLines.forEach(tell)
        tell("\(tally.sentence(isDryRun: order.isDryRun)), under \(order.prefix) in \(order.region)")
        guard let failure else { return .success(tally.grants.bad == 0 ? .success : .badData) }
        guard tally.all > 0 else { return .failure(failure) }
        let outlook = """
            the import stopped there; start the same import again to continue: it does not read the secrets of stored \
            users
            """
        return .failure(CommandFailure(failure.exitCode, "\(failure.message)\n\(outlook)"))
    }

    private func openSecretsHTTP() throws(HTTPFailure) -> HTTPClient {
        var settings = HTTPClient.Configuration()
        settings.maximumBodyBytes = SecretsManagerClient.longestAnswer
        settings.maximumConnections = SecretsManagerReader.concurrency
        settings.maximumInFlight = SecretsManagerReader.concurrency
        return try openHTTP(settings)
    }
}
