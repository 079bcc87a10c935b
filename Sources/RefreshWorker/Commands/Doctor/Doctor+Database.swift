import Base
import Crypto
import Status
import Storage

/// The checks of the database: its file, its content, and whether the key ring opens its tokens.
extension Doctor {
    /// The free space below which SQLite might not be able to write its log.
    static let minimumSpace: Int64 = 16 << 20
    static let content = "database content"

    func databaseChecks() async throws -> [Check] {
        switch context.configuration.database {
        case .file(let path): try await sqliteChecks(path)
        case .server(let address): await serverChecks(address)
        }
    }

    private func sqliteChecks(_ path: String) async throws -> [Check] {
        let (file, mayBeOpened) = await BlockingCallQueue.files.run { fileCheck(path) }
        let checks = [file.named("database"), spaceCheck(path)]
        guard mayBeOpened else { return checks }
        let store: SQLiteStore
        do {
            store = try await context.openFile(path, time: context.time, for: .reading)
        } catch {
            return checks + [.fault("\(error)").named(Self.content)]
        }
        let content = await contentChecks(of: store)
        await store.close()
        let bug = "which has the WAL-reset bug: this program avoids it; let no other program write to the database"
        let library = SQLiteStore.libraryVersion + (SQLiteStore.libraryHasLogResetBug ? ", \(bug)" : "")
        return checks + [.ok(library).named("SQLite library")] + content
    }

    /// Checks the file, and says in `mayBeOpened` whether it can be opened without a change to it.
    private func fileCheck(_ path: String) -> (check: Check, mayBeOpened: Bool) {
        do {
            let leftovers = try LeftoverFiles.besideMissing(path)
            guard leftovers.isEmpty else {
                return (.fault(LeftoverFiles.finding(path, leftovers: leftovers), advice: LeftoverFiles.advice), false)
            }
            guard let status = try FileStatus.of(path) else { return (missingFileCheck(path), false) }
            if let fault = fault(of: status, at: path) { return (fault, false) }
            let isEmpty = status.size == 0
            guard status.permissions & 0o007 == 0 else {
                let advice = FileOwner.advice(toProtect: path)
                return (.fault("\(path) is open to others (mode \(status.mode))", advice: advice), !isEmpty)
            }
            if isEmpty { return (.ok("\(path) is empty: the worker creates its tables at its first start"), false) }
            return (.ok("\(path), \(status.size.inBytes), mode \(status.mode)"), true)
        } catch {
            return (.fault("\(error)", advice: Self.folderAdvice), false)
        }
    }

    private func fault(of status: FileStatus, at path: String) -> Check? {
        guard status.kind == .regular else {
            return .fault("\(path) is not a file", advice: "name one with --database")
        }
        guard FileStatus.mayRead(path), FileStatus.mayWrite(path) else {
            return .fault("\(path) cannot be read and written\(FileOwner.advice(onDenied: path))")
        }
        let folder = path.parentFolder
        guard FileStatus.mayWrite(folder) else {
            let finding = "\(folder), where SQLite keeps its log, cannot be written"
            return .fault(finding, advice: "let the worker's user write there")
        }
        guard status.size == 0 || FileStatus.schema(ofDatabaseFile: path) != nil else {
            let advice = "name another file, or put a backup in its place while no worker runs"
            return .fault("\(path) is not a SQLite database, or is damaged", advice: advice)
        }
        return nil
    }

    private func missingFileCheck(_ path: String) -> Check {
        let folder = path.parentFolder
        guard context.inputs.files.exists(folder) else {
            return .fault("the folder of \(path) does not exist", advice: "run: mkdir -p \(folder)")
        }
        guard FileStatus.mayWrite(folder) else {
            return .fault("\(path) cannot be created", advice: "let the worker's user write to \(folder)")
        }
        return .warning("\(path) does not exist yet: the worker creates it at its first start")
    }

    private func spaceCheck(_ path: String) -> Check {
        do throws(SystemCallError) {
            return Self.space(try Folder.freeSpace(in: path.parentFolder))
        } catch {
            return .warning("unknown: \(error)").named("free disk space")
        }
    }

    static func space(_ free: Int64) -> Check {
        let text = "\(free.inBytes) on the database's disk"
        return check("free disk space") {
            if free < minimumSpace { return .fault(text, advice: "free some space, or nothing can be stored") }
            return free < StatusSnapshot.nearlyFull ? .warning(text, advice: "free some space") : .ok(text)
        }
    }

    private func contentChecks(of store: SQLiteStore) async -> [Check] {
        do {
            let problems = try await store.integrityProblems()
            guard problems.isEmpty else {
                let finding = "\(store.path) is damaged (\(problems.prefix(3).joined(separator: "; ")))"
                let advice = "stop the worker, keep the file for a repair, and put a backup in its place"
                return [.fault(finding, advice: advice).named(Self.content)]
            }
        } catch {
            return [.fault("\(error)").named(Self.content)]
        }
        return await recordChecks(of: store)
    }

    /// Checks the stored records, in both stores.
    func recordChecks(of store: any Store) async -> [Check] {
        let location = context.configuration.database
        func fault(_ finding: String, advice: String? = nil) -> [Check] {
            [.fault(finding, advice: advice).named(Self.content)]
        }
        do {
            guard try await !store.isReceiving else { return fault("\(CommandError(unfinished: location))") }
            if let newLocation = try await store.movedTo {
                return fault("\(StoreError(moved: "\(location)", to: newLocation))")
            }
            let rows = try await rowCheck(of: store)
            if let rows, rows.severity == .fault { return [rows.named(Self.content)] }
            let use = try await counted { try await store.keyUse() }
            let keys = if let use { await keyCheck(of: store, for: use) } else { Self.keysNotCounted }
            let (grants, checks) = try await statusChecks(of: store)
            var count = "its grants were not counted in time"
            if let grants { count = grants.grants.counted("grant") }
            return [
                .ok("intact, its schema is this program's, \(count)").named(Self.content), keys.named("keys in use"),
            ] + [rows?.named("rows")].compactMap(\.self) + checks
        } catch {
            return fault("\(error)")
        }
    }

    /// Returns the problem with the number of rows, if there is one, or if the database did not count them in time.
    private func rowCheck(of store: any Store) async throws -> Check? {
        guard let problem = try await counted({ try await store.grantRowProblem() }) else { return Self.rowsNotCounted }
        return problem.map { .fault($0, advice: "see database_rows_lost in docs/runbook.md") }
    }

    private static let rowsNotCounted = Check.warning(
        "the database did not count its rows in time, so it is unknown if some were lost",
        advice: "see counts_timed_out in docs/runbook.md"
    )

    private static let keysNotCounted = Check.warning(
        "the database did not count the tokens of each key in time",
        advice: "see counts_timed_out in docs/runbook.md"
    )

    /// Returns what a count says, or `nil` if the database did not finish it in time.
    private func counted<Value>(_ count: () async throws -> Value) async throws -> Value? {
        do {
            return try await count()
        } catch let error as StoreError where error.isTimeout {
            return nil
        }
    }

    private func keyCheck(of store: any Store, for use: KeyUse) async -> Check {
        do {
            let ring = try context.openVault().ring.current
            let check = Self.keys(KeyRingSummary(ring), inUse: use.tokensByKey)
            guard check.severity == .ok, case .foreign(let ids)? = try await store.recordedFit(of: ring) else {
                return check
            }
            let finding = """
                the ring does not open what was sealed with \(ids.map(\.description).joined(separator: ", ")): it is another \
                ring with keys of the same name
                """
            return .fault(finding, advice: "restore the key ring from a backup")
        } catch let error as FileError where error.kind == .missing && use.tokens > 0 {
            let tokens = use.tokens.counted("token")
            let finding = "\(tokens) of the keys in the missing file cannot be used"
            return .warning(finding, advice: "restore the file from its copy: a new key ring would not open them")
        } catch {
            return .warning("not compared with the key ring, which cannot be read", advice: "fix that first")
        }
    }

    private static func keys(_ ring: KeyRingSummary, inUse keysInUse: [KeyID: Int]) -> Check {
        let missing = ring.missingKeys(of: keysInUse)
        guard !missing.isEmpty else {
            guard !keysInUse.isEmpty else { return .ok("nothing is sealed yet") }
            let bound = keysInUse.filter { ring.isBinding($0.key) }.values.reduce(0, +)
            guard bound > 0 else { return .ok("all are in the ring") }
            return .ok(
                """
                all are in the ring, which binds \(bound.counted("refresh token")): without a copy of it, everyone who is \
                bound would have to sign in again
                """
            )
        }
        let tokens = missing.reduce(0) { $0 + (keysInUse[$1] ?? 0) }.counted("token")
        let names = missing.map(\.description).joined(separator: ", ")
        return .fault(
            "\(tokens) of key \(names), which the ring lacks, cannot be used",
            advice: "restore the key ring from a backup, or have those users sign in again"
        )
    }
}
