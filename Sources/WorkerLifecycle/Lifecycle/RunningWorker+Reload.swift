import Observability
import RefreshEngine
import WorkerConfiguration

extension RunningWorker {
    /// Reads the configuration and its files again, and applies the settings that a reload can change.
    ///
    /// Returns the flags of the changed settings that need a restart.
    func reloadConfiguration() async throws -> [String] {
        // Steps that can fail come first: a reload happens as a whole or not at all.
        let fresh = try Configuration(context.inputs)
        let next = context.configuration.reloaded(from: fresh)
        // The worker serves with the one now, and after its next start with the other.
        for configuration in [next, fresh] {
            try configuration.checkServing(environment: context.inputs.environment)
        }
        let clientSecrets = try CommandContext.clientSecrets(of: next)
        try await presence.report()
        try listeners.reload(context)
        context.current.replace(with: next)
        for group in Setting.ReloadGroup.allCases {
            switch group {
            // The routes read the client ids from the configuration.
            case .clients: engine.change(clientSecrets: clientSecrets)
            case .logs: context.diagnostics.level = next.logLevel
            case .rate: await engine.change(maxRate: next.maxRate)
            }
        }
        return fresh.settingsThatNeedRestart(comparedWith: next)
    }
}
