import Base
import Crypto
import Scheduler
import Storage
import Telemetry

/// What became of the results of a spill file.
struct RecoveredFile: Sendable {
    var summary = ResultRecovery()
    /// For people: some results cannot be read, or belong to grants that are not in this database.
    var problem: String?
    /// The keys that the ring lacks.
    var missingKeys: Set<KeyID> = []
}

/// Finds spill files and stores their results before any other use of the database.
///
/// A file is deleted only after its results are committed. One that cannot be recovered completely is set aside, never
/// deleted. One that needs another key ring stays in place until that key is given up, so that the first start with that
/// ring recovers it.
extension CommandContext {
    /// The time to wait for a file that another process recovers or still writes.
    private static let lockTimeout: Duration = .seconds(10)

    private func recoverAll(of location: SpillLocation, into store: any Store) async throws {
        let vault = try openVault()
        let fit = try await store.recordedFit(of: vault.ring.current)
        for path in try location.spills {
            if case .foreign(let ids)? = fit { throw CommandError(resultsIn: path, need: Set(ids), of: vault) }
            guard let recovered = try await recover(path, into: store, with: vault) else {
                diagnostics.warning("a spill file is in use by another process, which recovers it", ["file": path])
                continue
            }
            let summary = recovered.summary
            if !recovered.missingKeys.isEmpty {
                // A key that was given up (keys retire --lost) must not stop the work for the other grants.
                let inUse = if let fit { fit.keyIDs } else { try await Array(store.keysInUse().keys) }
                let needed = recovered.missingKeys.intersection(inUse)
                guard needed.isEmpty else { throw CommandError(resultsIn: path, need: needed, of: vault) }
            }
            guard let problem = recovered.problem else {
                try SpillFile.remove(path)
                guard summary != ResultRecovery() else { continue }
                diagnostics.notice(
                    "results that were not saved before are stored",
                    [
                        "file": path, "stored": "\(summary.stored)", "outdated": "\(summary.outdated)",
                        "unknown": "\(summary.unknown)",
                    ]
                )
                continue
            }
            let target = SpillLocation.setAside(path)
            _ = try SpillFile.rename(path, to: target)
            diagnostics.error(
                "results could not all be stored and were set aside: fix the cause, then run results recover FILE",
                [
                    "file": target, "error": problem, "stored": "\(summary.stored)",
                    "outdated": "\(summary.outdated)", "unknown": "\(summary.unknown)",
                ]
            )
        }
    }

    /// Stores the results of one file and leaves the file in place.
    ///
    /// Returns `nil` if a running process uses the file, or it is gone.
    func recover(
        _ path: String,
        into store: any Store,
        with vault: TokenVault
    ) async throws -> RecoveredFile? {
        let content: SpillFormat.Content
        do {
            guard let file = try SpillFile.openIfThere(path), try await hasLocked(file), file.isInPlace else {
                return nil
            }
            guard let bytes = try file.read(limit: SpillFormat.maximumSize) else {
                return RecoveredFile(problem: "it is larger than any spill file")
            }
            content = SpillFormat.read(bytes)
        } catch let error as SystemCallError {
            throw CommandError(
                .inputOutput,
                """
                results wait in \(path), which cannot be read: \(error). See that it is a regular file that this user owns, and try \
                again: its refresh tokens might be newer than those in the database
                """
            )
        }
        var results: [RefreshResult] = []
        var exchanged: [ExchangedTokens] = []
        var missingKeys: Set<KeyID> = []
        var problem = content.isDamaged ? "it is damaged or incomplete, or not a spill file" : nil
        for sealed in content.results {
            do {
                if let tokens = try ExchangedTokens.open(sealed, with: vault) {
                    exchanged.append(tokens)
                } else {
                    results.append(try RefreshResult.open(sealed, with: vault))
                }
            } catch {
                if case CryptoError.unknownKey(let id) = error { missingKeys.insert(id) }
                problem = "\(error)"
            }
        }
        var summary = try await ResultRecovery.recover(
            results,
            into: store,
            maxRate: configuration.maxRate,
            time: time,
            random: random
        )
        try await summary.store(exchanged, into: store, sealingWith: vault, time: time, random: random)
        if problem == nil, summary.unknown > 0 {
            problem = """
                \(summary.unknown) of its \(results.count) grants are not in this database: it is another one, or an older \
                backup
                """
        }
        return RecoveredFile(summary: summary, problem: problem, missingKeys: missingKeys)
    }

    private func hasLocked(_ file: SpillFile) async throws -> Bool {
        let end = time.sinceBoot + Self.lockTimeout
        while try !file.tryLock() {
            guard time.sinceBoot < end else { return false }
            try await time.sleep(for: .milliseconds(100))
        }
        return true
    }
}

extension CommandError {
    fileprivate init(resultsIn path: String, need keys: Set<KeyID>, of vault: TokenVault) {
        let ids = keys.sorted().map(\.description).joined(separator: ", ")
        self.init(
            .configuration,
            """
            results wait in \(path), sealed with \(ids), and \(vault.ring.name) does not open them: put back the key ring \
            that does, because the refresh tokens that wait might be newer than the stored ones; if a key is lost for \
            good, run: refresh-worker keys retire --lost ID
            """
        )
    }
}

extension ResultRecovery {
    /// The outcome in words.
    var sentence: String {
        "\(stored) results are stored, \(outdated) were out of date, \(unknown) are of grants that are not here"
    }
}

/// Stores and reports the results of spill files.
extension CommandContext {
    /// Reports results that could not be stored.
    func report(_ unstored: UnstoredResults, in spill: ResultSpillFile) {
        if unstored.spilled > 0, let path = spill.path {
            diagnostics.error(
                "results could not be stored and were kept in a file: the next start stores them, or results recover FILE",
                ["results": "\(unstored.spilled)", "file": path]
            )
        }
        if unstored.lost > 0 {
            diagnostics.error(
                "results could not be stored and are lost: where refresh tokens rotate, these users must sign in again",
                ["lost": "\(unstored.lost)"]
            )
        }
    }

    /// Stores the results in spill files of a database, before any other use of it.
    func recoverResults(into store: any Store, of database: DatabaseLocation, use: DatabaseAccess)
        async throws
    {
        let location = spillLocation(of: database)
        do {
            guard try !location.spills.isEmpty else { return }
            try await recoverAll(of: location, into: store)
        } catch  where use == .changing && Self.endsWork(error) {
            throw error
        } catch {
            // The file stays in place, so that the next process that opens the database tries again.
            diagnostics.error(
                "results that were not saved before cannot be stored now",
                ["folder": location.folder, "error": CommandError(error).message]
            )
        }
    }

    /// `true` if this error of the recovery forbids refreshes, because they could send a token that Google has rotated
    /// since.
    ///
    /// Otherwise a spill file does not exist, as far as can be known, or the key ring cannot be read.
    static func endsWork(_ error: any Error) -> Bool {
        switch error {
        case is StoreError, is CommandError: true
        case let error as SystemCallError: error.mayPass
        default: false
        }
    }
}
