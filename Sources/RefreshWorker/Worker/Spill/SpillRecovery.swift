import Base
import Crypto
import Scheduler
import Storage
import Telemetry

/// Finds spill files and stores their results before any other use of the database.
///
/// A file is deleted only after its results are committed. One that cannot be recovered completely is set aside, never
/// deleted. One that needs another key ring stays in place until that key is given up, so that the first start with
/// that ring recovers it. One of another database stays for the workers of that one.
struct SpillRecovery {
    /// The time to wait for a file that another process recovers or still writes.
    private static let lockTimeout: Duration = .seconds(10)

    private let context: CommandContext
    /// The database that this one replaced, if the operator names it (`--of-database`). Its user ids are this one's.
    private let formerDatabase: DatabaseID?

    init(_ context: CommandContext, formerDatabase: DatabaseID? = nil) {
        self.context = context
        self.formerDatabase = formerDatabase
    }

    /// Stores the results in the spill files of a database.
    func recoverAll(into store: any Store, of database: DatabaseLocation, use: DatabaseAccess) async throws {
        let location = context.spillLocation(of: database)
        do {
            guard try !location.spills.isEmpty else { return }
            try await recoverAll(of: location, into: store)
        } catch  where use == .changing && Self.forbidsRefreshes(error) {
            throw error
        } catch {
            // The file stays in place, so that the next process that opens the database tries again.
            context.diagnostics.error(
                "results that were not saved before cannot be stored now",
                ["folder": location.folder, "error": CommandError(error).message]
            )
        }
    }

    private func recoverAll(of location: SpillLocation, into store: any Store) async throws {
        let vault = try context.openVault()
        let fit = try await store.recordedFit(of: vault.ring.current)
        let database = try await store.databaseID(from: context.random)
        for path in try location.spills {
            // A file of another database can also need another key ring.
            if let owner = otherDatabase(than: database, of: path) {
                context.diagnostics.warning(
                    "a spill file is of another database, and stays: its worker stores it, or here results recover FILE",
                    ["file": path, "database": owner.description]
                )
                continue
            }
            if case .foreign(let ids)? = fit { throw CommandError(resultsIn: path, need: Set(ids), of: vault) }
            guard let recovered = try await recover(path, into: store, with: vault) else {
                context.diagnostics.warning(
                    "a spill file is in use by another process, which recovers it",
                    ["file": path]
                )
                continue
            }
            if !recovered.missingKeys.isEmpty {
                // A key that was given up (keys retire --lost) must not stop the work for the other grants.
                let inUse = if let fit { fit.keyIDs } else { try await Array(store.keysInUse().keys) }
                let needed = recovered.missingKeys.intersection(inUse)
                guard needed.isEmpty else { throw CommandError(resultsIn: path, need: needed, of: vault) }
            }
            if let problem = recovered.problem {
                try setAside(path, after: recovered.summary, because: problem)
            } else {
                try remove(path, after: recovered.summary)
            }
        }
    }

    /// Returns the database of a file if it is another one than `database`.
    private func otherDatabase(than database: DatabaseID, of path: String) -> DatabaseID? {
        do throws(SystemCallError) {
            let file = try SpillFile.openIfThere(path, forReading: true)
            guard let bytes = try file?.read(limit: SpillFormat.maximumSize) else { return nil }
            guard let owner = SpillFormat.read(bytes).database, owner != database else { return nil }
            return owner
        } catch {
            // The recovery reports a file that cannot be read.
            return nil
        }
    }

    private func remove(_ path: String, after summary: ResultRecovery) throws {
        try SpillFile.remove(path)
        guard summary != ResultRecovery() else { return }
        context.diagnostics.notice(
            "results that were not saved before are stored",
            [
                "file": path, "stored": "\(summary.stored)", "outdated": "\(summary.outdated)",
                "unknown": "\(summary.unknown)",
            ]
        )
    }

    private func setAside(_ path: String, after summary: ResultRecovery, because problem: String) throws {
        let target = SpillLocation.setAside(path)
        _ = try SpillFile.rename(path, to: target)
        context.diagnostics.error(
            "results could not all be stored and were set aside: fix the cause, then run results recover FILE",
            [
                "file": target, "error": problem, "stored": "\(summary.stored)",
                "outdated": "\(summary.outdated)", "unknown": "\(summary.unknown)",
            ]
        )
    }

    /// Stores the results of one file and leaves the file in place.
    ///
    /// Returns `nil` if a running process uses the file, or it is gone.
    func recover(_ path: String, into store: any Store, with vault: TokenVault) async throws -> RecoveredFile? {
        let content: SpillFormat.Content
        do {
            guard let file = try SpillFile.openIfThere(path), try await lock(file), file.isInPlace else {
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
        return try await recover(content, into: store, with: vault)
    }

    private func recover(
        _ content: SpillFormat.Content,
        into store: any Store,
        with vault: TokenVault
    ) async throws -> RecoveredFile {
        var recovered = RecoveredFile()
        if content.isDamaged { recovered.problem = "it is damaged or incomplete, or not a spill file" }
        var results: [RefreshResult] = []
        var exchanged: [ExchangedTokens] = []
        for sealed in content.results {
            do {
                if let tokens = try ExchangedTokens.open(sealed, with: vault) {
                    exchanged.append(tokens)
                } else {
                    results.append(try RefreshResult.open(sealed, with: vault))
                }
            } catch {
                if case CryptoError.unknownKey(let id) = error { recovered.missingKeys.insert(id) }
                recovered.problem = "\(error)"
            }
        }
        recovered.summary = try await ResultRecovery.recover(
            results,
            into: store,
            maxRate: context.configuration.maxRate,
            time: context.time,
            random: context.random
        )
        // The id of a grant is random, so its result belongs to it in any copy of the database. A user id is not.
        if !exchanged.isEmpty, let owner = content.database, try await !hasUsers(of: owner, in: store) {
            recovered.problem = """
                the tokens of \(exchanged.count.counted("code")) are of another database, \(owner), whose users can have \
                the same ids as others here, and would then get their Google accounts. Leave the file for the workers of \
                that database. Only if this database has taken its place, run the command again with --of-database \(owner)
                """
            return recovered
        }
        try await recovered.summary.store(
            exchanged,
            into: store,
            sealingWith: vault,
            time: context.time,
            random: context.random
        )
        let contradicting = recovered.summary.contradicting
        if recovered.problem == nil, contradicting > 0 {
            recovered.problem = """
                the tokens of \(contradicting.counted("user")) contradict what is stored about them: look at these users with users show
                """
        }
        let unknown = recovered.summary.unknown
        if recovered.problem == nil, unknown > 0 {
            recovered.problem = """
                \(unknown) of its \(results.count.counted("grant")) are not in this database: it is another one, or an older \
                backup
                """
        }
        return recovered
    }

    /// `true` if the users of a file's database are those of the store.
    private func hasUsers(of owner: DatabaseID, in store: any Store) async throws -> Bool {
        if owner == formerDatabase { return true }
        return try await owner == store.databaseID(from: context.random)
    }

    private func lock(_ file: SpillFile) async throws -> Bool {
        let end = context.time.sinceBoot + Self.lockTimeout
        while try !file.tryLock() {
            guard context.time.sinceBoot < end else { return false }
            try await context.time.sleep(for: .milliseconds(100))
        }
        return true
    }

    /// `true` if this error of the recovery forbids refreshes, because they could send a token that Google has rotated
    /// since.
    ///
    /// Otherwise a spill file does not exist, as far as can be known, or the key ring cannot be read.
    static func forbidsRefreshes(_ error: any Error) -> Bool {
        switch error {
        case is StoreError, is CommandError: true
        case let error as SystemCallError: error.mayPass
        default: false
        }
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
