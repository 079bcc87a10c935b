import Clocks
import Store
package import WorkerConfiguration
import WorkerLifecycle

/// `notices replay`: queues notices for another delivery.
extension CommandContext {
    package func replayNotices(of user: String?, within span: Duration) async throws -> ExitCode {
        let since = time.now - span
        let count = try await withExistingStore(for: .changing) { store in
            try await store.replayNotices(since: since, ofUser: user, at: time.now)
        }
        Output.standard.line(
            count == 0
                ? "no notice matches" : "\(count) \(count == 1 ? "notice is" : "notices are") queued to be posted again"
        )
        return .success
    }
}
