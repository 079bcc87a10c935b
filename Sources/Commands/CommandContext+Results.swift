import Base
import Scheduler
import Storage
package import Worker

/// `results recover FILE`: stores the results of a spill file.
extension CommandContext {
    package func recoverResults(from path: String, isJSON: Bool) async throws -> ExitCode {
        guard inputs.files.exists(path) else {
            throw CommandFailure(.inputUnreadable, "\(path) does not exist, or cannot be reached")
        }
        let vault = try openVault()
        let store = try await openExistingStore(for: .changing)
        return try await Self.using(store) {
            guard inputs.files.exists(path) else {
                Output.standard.line(
                    isJSON
                        ? Self.json(of: nil, from: path)
                        : "everything in \(path) was stored when the database was opened"
                )
                return .success
            }
            let recovery = SpillRecovery(store: store, vault: vault, context: self)
            switch try await recovery.recover(path) {
            case .left:
                throw CommandFailure(.leftForLater, "\(path) is in use by another process: try again when it has ended")
            case .recovered(ResultRecovery.Summary()):
                throw CommandFailure(.badData, "\(path) contains no results, and was not removed")
            case .recovered(let summary):
                try SpillFile.remove(path)
                Output.standard.line(
                    isJSON ? Self.json(of: summary, from: path) : "\(summary.sentence); \(path) is removed"
                )
                return .success
            case .incomplete(let summary, let reason):
                throw CommandFailure(
                    .badData,
                    "\(path) could not be recovered completely: \(reason). \(summary.sentence); the file was not removed"
                )
            }
        }
    }

    /// Returns the outcome for programs; the numbers are unknown if the opening of the database has stored the results.
    private static func json(of summary: ResultRecovery.Summary?, from path: String) -> String {
        var line = JSONLine()
        line.field("file", path)
        line.fieldOrNull("stored", summary?.stored)
        line.fieldOrNull("outdated", summary?.outdated)
        line.fieldOrNull("unknown", summary?.unknown)
        return line.text
    }
}

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
