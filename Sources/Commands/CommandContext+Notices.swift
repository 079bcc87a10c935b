import Base
import Storage
package import Worker

/// `notices replay`: queues notices for another delivery.
extension CommandContext {
    package func replayNotices(of user: String?, within span: Duration, isJSON: Bool) async throws -> ExitCode {
        let since = time.now - span
        let count = try await withExistingStore(for: .changing) { store in
            try await store.replayNotices(since: since, ofUser: user, at: time.now)
        }
        guard !isJSON else {
            var line = JSONLine()
            line.field("queued", count)
            Output.standard.line(line.bytes)
            return .success
        }
        Output.standard.line(
            count == 0
                ? "no notice matches" : "\(count) \(count == 1 ? "notice is" : "notices are") queued to be posted again"
        )
        return .success
    }
}
