import Base
import Crypto
package import Scheduler
package import Storage
import Telemetry

/// Finds spill files and stores their results before any other use of the database.
///
/// A file is deleted only after its results are committed. One that cannot be recovered completely is set aside, never
/// deleted.
package struct SpillRecovery: Sendable {
    /// The outcome for one file.
    package enum Outcome: Equatable, Sendable {
        case recovered(ResultRecovery.Summary)
        /// Some results cannot be read, or belong to grants that are not in this database; the reason is for people.
        case incomplete(ResultRecovery.Summary, reason: String)
        /// A running process uses the file, or it is gone.
        case left
    }

    package static let sizeLimit = 64 << 20
    /// The time to wait for a file that another process recovers or still writes.
    private static let lockTimeout: Duration = .seconds(10)

    let store: any GrantStore
    let vault: TokenVault
    let context: CommandContext

    package init(store: any GrantStore, vault: TokenVault, context: CommandContext) {
        self.store = store
        self.vault = vault
        self.context = context
    }

    /// Returns the spill files of a location, complete or not.
    static func files(of location: SpillLocation) throws(SystemCallError) -> [String] {
        try SpillFile.names(in: location.folder).filter(location.isSpill).map { "\(location.folder)/\($0)" }
    }

    /// Recovers all files of a location.
    func recoverAll(of location: SpillLocation) async throws {
        for path in try Self.files(of: location) {
            switch try await recover(path) {
            case .left:
                context.diagnostics.warning(
                    "a spill file is in use by another process, which recovers it",
                    ["file": path]
                )
            case .recovered(let summary):
                try SpillFile.remove(path)
                guard summary != ResultRecovery.Summary() else { continue }
                context.diagnostics.notice(
                    "results that were not saved before are stored",
                    [
                        "file": path, "stored": "\(summary.stored)", "outdated": "\(summary.outdated)",
                        "unknown": "\(summary.unknown)",
                    ]
                )
            case .incomplete(let summary, let reason):
                let target = SpillLocation.setAside(path)
                _ = try SpillFile.rename(path, to: target)
                context.diagnostics.error(
                    "results could not all be stored and were set aside: fix the cause, then run results recover FILE",
                    [
                        "file": target, "error": reason, "stored": "\(summary.stored)",
                        "outdated": "\(summary.outdated)", "unknown": "\(summary.unknown)",
                    ]
                )
            }
        }
    }

    /// Stores the results of one file and leaves the file in place.
    package func recover(_ path: String) async throws -> Outcome {
        let content: SpillFormat.Content
        do {
            guard let file = try SpillFile.openIfThere(path), try await hasLocked(file), file.isInPlace else {
                return .left
            }
            guard let bytes = try file.read(limit: Self.sizeLimit) else {
                return .incomplete(ResultRecovery.Summary(), reason: "it is larger than any spill file")
            }
            content = SpillFormat.read(bytes)
        } catch let error as SystemCallError {
            throw CommandFailure(
                .inputOutput,
                """
                results wait in \(path), which cannot be read: \(error). See that it is a regular file that this user owns, and try \
                again: its refresh tokens may be newer than those in the database
                """
            )
        }
        var results: [RefreshResult] = []
        var reason = content.isDamaged ? "it is damaged or incomplete, or not a spill file" : nil
        for sealed in content.results {
            do {
                results.append(try SpilledResult.open(sealed, with: vault))
            } catch {
                reason = "\(error)"
            }
        }
        let recovery = ResultRecovery(
            into: store,
            maxRate: context.configuration.maxRate,
            time: context.time,
            random: context.random
        )
        let summary = try await recovery.recover(results)
        if summary.unknown > 0 {
            reason =
                reason
                ?? "\(summary.unknown) of its \(results.count) grants are not in this database: it is another one, or an older backup"
        }
        return reason.map { .incomplete(summary, reason: $0) } ?? .recovered(summary)
    }

    private func hasLocked(_ file: SpillFile) async throws -> Bool {
        let end = context.time.sinceBoot + Self.lockTimeout
        while try !file.tryLock() {
            guard context.time.sinceBoot < end else { return false }
            try await context.time.sleep(for: .milliseconds(100))
        }
        return true
    }
}

extension ResultRecovery.Summary {
    /// The outcome in words.
    package var sentence: String {
        "\(stored) results are stored, \(outdated) were out of date, \(unknown) are of grants that are not here"
    }
}
