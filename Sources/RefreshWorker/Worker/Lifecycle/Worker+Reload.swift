import Base
import Routes
import Scheduler
import Telemetry

/// SIGHUP.
extension Worker {
    /// Reopens the metrics log, then applies the configuration and its files as they are now.
    ///
    /// The log is reopened in every case, because a rotated file must be let go even if the configuration has an error.
    func reload() async {
        writer.reopen()
        // Not awaited: it can take half a minute, in which a request to stop would wait.
        context.commandedKeyRing?.request()
        do {
            let pending = try await reloadConfiguration()
            if pending.isEmpty {
                context.diagnostics.notice("reloaded")
            } else {
                let names = pending.joined(separator: ", ")
                context.diagnostics.warning("reloaded; these settings need a restart", ["settings": names])
            }
        } catch {
            context.diagnostics.error(
                "not reloaded: the settings, services, client secrets and certificate stay as they were",
                ["error": CommandError(error).message]
            )
        }
    }

    /// Reads the configuration and its files again, and applies the settings that a reload can change.
    ///
    /// Returns the flags of the changed settings that need a restart.
    func reloadConfiguration() async throws -> [String] {
        // Steps that can fail come first, so that either all changes apply or none. The key ring is an exception: each
        // heartbeat adopts it, whether there is a reload or not.
        let latest = try Configuration(context.inputs)
        let next = context.configuration.reloaded(from: latest)
        // The worker uses `next` until its next start, and `latest` afterwards.
        for configuration in [next, latest] {
            try configuration.checkServing(environment: context.inputs.environment)
        }
        let clientSecrets = try ClientSecretFile.read(for: next)
        let internalListener = listeners?.internalListener
        let listenerFiles = try internalListener?.readFiles(context)
        try await heartbeat.report()
        // Nothing below can fail.
        if let listenerFiles { internalListener?.apply(listenerFiles) }
        context.current.value = next
        clientSecrets.warnOfUnconfiguredClientIDs(
            to: context.diagnostics,
            path: context.configuration.clientSecretFile
        )
        for group in Setting.ReloadGroup.allCases {
            switch group {
            // The routes read the client ids from the configuration.
            case .clients:
                engine.change(clientSecrets: clientSecrets.secrets)
                // The next code, or the next refresh, shows if that was the cause.
                log.end([.codesRefused])
                for client in context.configuration.allClientIDs { log.end([.clientSecretsDiffer], client: client) }
            case .logs:
                context.diagnostics.level = next.logLevel
                log.sample(oneOf: next.logSample)
            case .rate: await engine.change(maxRate: next.maxRate)
            }
        }
        return latest.settingsThatNeedRestart(comparedWith: next)
    }
}
