import Base
import Crypto
import Status
import Storage
import Worker

/// The checks of the database: its file, its content, and whether the key ring opens its tokens.
extension Doctor {
    /// The free space below which SQLite may not be able to write its log.
    private static let minimumSpace: Int64 = 16 << 20
    private static let subject = "database"
    static let contentSubject = "database content"

    func databaseDiagnoses() async throws -> [Diagnosis] {
        switch context.configuration.database {
        case .file(let path): try await fileDiagnoses(path)
        case .server(let address): await serverDiagnoses(address)
        }
    }

    private func fileDiagnoses(_ path: String) async throws -> [Diagnosis] {
        let file = try await BlockingCallQueue.files.run { fileDiagnosis(path) }
        let space = spaceDiagnosis(path)
        guard file.mayBeOpened else { return [file.diagnosis, space] }
        let store: SQLiteStore
        do {
            store = try await context.openFile(path, time: context.time, for: .reading)
        } catch {
            return [file.diagnosis, space, .fault(Self.contentSubject, "\(error)")]
        }
        let content = await contentDiagnoses(of: store)
        await store.close()
        return [file.diagnosis, space, Self.libraryDiagnosis] + content
    }

    private static var libraryDiagnosis: Diagnosis {
        let subject = "SQLite library"
        let version = SQLiteStore.libraryVersion
        guard SQLiteStore.libraryHasLogResetBug else { return .ok(subject, version) }
        return .ok(
            subject,
            "\(version), which has the WAL-reset bug: this program avoids it; let no other program write to the database"
        )
    }

    /// Checks the file; `mayBeOpened` is `true` if opening it would not change it.
    private func fileDiagnosis(_ path: String) -> (diagnosis: Diagnosis, mayBeOpened: Bool) {
        func fault(_ finding: String, _ advice: String) -> (diagnosis: Diagnosis, mayBeOpened: Bool) {
            (.fault(Self.subject, finding, advice: advice), false)
        }
        do {
            let leftovers = try LeftoverFiles.besideMissing(path)
            guard leftovers.isEmpty else { return fault(LeftoverFiles.finding(path, leftovers), LeftoverFiles.advice) }
            guard let status = try FileStatus.of(path) else { return (missingDiagnosis(path), false) }
            guard status.kind == .regular else { return fault("\(path) is not a file", "name one with --database") }
            let folder = FileStatus.folder(of: path)
            guard FileStatus.mayRead(path), FileStatus.mayWrite(path) else {
                let advice = "run as its owner: runuser -u \"$(id -nu \(status.owner))\" -- refresh-worker doctor"
                return fault("\(path) cannot be read and written by this user", advice)
            }
            guard FileStatus.mayWrite(folder) else {
                return fault(
                    "\(folder), where SQLite keeps its log, cannot be written",
                    "let the worker's user write there"
                )
            }
            let isEmpty = status.size == 0
            guard isEmpty || CommandContext.schema(ofDatabaseFile: path) != nil else {
                return fault(
                    "\(path) is not a SQLite database, or is damaged",
                    "name another file, or put a backup in its place while no worker runs"
                )
            }
            guard status.permissions & 0o007 == 0 else {
                let open = fault("\(path) is open to others (mode \(status.mode))", "run: chmod 600 \(path)")
                return (open.diagnosis, !isEmpty)
            }
            if isEmpty {
                return (.ok(Self.subject, "\(path) is empty: the worker creates its tables at its first start"), false)
            }
            return (.ok(Self.subject, "\(path), \(ByteCount.text(status.size)), mode \(status.mode)"), true)
        } catch {
            return fault("\(error)", "check that the worker's user may enter its folders")
        }
    }

    private func missingDiagnosis(_ path: String) -> Diagnosis {
        let folder = FileStatus.folder(of: path)
        guard context.inputs.files.exists(folder) else {
            return .fault(Self.subject, "the folder of \(path) does not exist", advice: "run: mkdir -p \(folder)")
        }
        guard FileStatus.mayWrite(folder) else {
            return .fault(Self.subject, "\(path) cannot be created", advice: "let the worker's user write to \(folder)")
        }
        return .warning(Self.subject, "\(path) does not exist yet: the worker creates it at its first start")
    }

    private func spaceDiagnosis(_ path: String) -> Diagnosis {
        let subject = "free disk space"
        do {
            return Self.check(subject, free: try FileStatus.freeSpace(at: FileStatus.folder(of: path)))
        } catch {
            return .warning(subject, "unknown: \(error)")
        }
    }

    static func check(_ subject: String, free: Int64) -> Diagnosis {
        let text = "\(ByteCount.text(free)) on the database's disk"
        if free < minimumSpace {
            return .fault(subject, "\(text)", advice: "free some space, or nothing can be stored")
        }
        if free < StatusSnapshot.nearlyFull { return .warning(subject, "\(text)", advice: "free some space") }
        return .ok(subject, text)
    }

    private func contentDiagnoses(of store: SQLiteStore) async -> [Diagnosis] {
        do {
            let problems = try await store.integrityProblems()
            guard problems.isEmpty else {
                let advice = "stop the worker, keep the file for a repair, and put a backup in its place"
                let found = problems.prefix(3).joined(separator: "; ")
                return [.fault(Self.contentSubject, "\(store.path) is damaged (\(found))", advice: advice)]
            }
        } catch {
            return [.fault(Self.contentSubject, "\(error)")]
        }
        return await recordDiagnoses(of: store)
    }

    /// Checks the stored records, in both stores.
    func recordDiagnoses(of store: any Store) async -> [Diagnosis] {
        let location = context.configuration.database
        do {
            guard try await !store.isReceiving else {
                return [.fault(Self.contentSubject, "\(CommandFailure(unfinished: location))")]
            }
            if let newLocation = try await store.movedTo {
                return [.fault(Self.contentSubject, "\(StoreError(moved: "\(location)", to: newLocation))")]
            }
            if let problem = try await store.grantCountProblem() {
                let advice = "see database_rows_lost in docs/runbook.md"
                return [.fault(Self.contentSubject, problem, advice: advice)]
            }
            let grants = try await store.grantStatistics(at: context.time.now).grants
            return [
                .ok(Self.contentSubject, "intact, its schema is this program's, \(grants) grants"),
                await keyDiagnosis(of: store, keysInUse: try await store.keysInUse()),
            ] + (try await statusDiagnoses(of: store))
        } catch {
            return [.fault(Self.contentSubject, "\(error)")]
        }
    }

    private func keyDiagnosis(of store: any Store, keysInUse: [KeyID: Int]) async -> Diagnosis {
        let subject = "keys in use"
        do {
            let ring = try context.openVault().ring.current
            let diagnosis = Self.check(subject, keyRing: KeyRingSummary(ring), keysInUse: keysInUse)
            guard diagnosis.severity == .ok,
                case .foreign(let ids)? = try await StoredKeyChecks(store).storedFit(of: ring)
            else { return diagnosis }
            return .fault(
                subject,
                """
                the ring does not open what was sealed with \(ids.map(\.description).joined(separator: ", ")): it is another \
                ring with keys of the same name
                """,
                advice: "restore the key ring from a backup"
            )
        } catch let error as FileError where error.kind == .missing && !keysInUse.isEmpty {
            let tokens = KeyListing.tokens(keysInUse.values.reduce(0, +))
            return .warning(
                subject,
                "\(tokens) sealed with the keys of the missing file cannot be opened",
                advice: "restore the file from its copy: a new key ring would not open them"
            )
        } catch {
            return .warning(subject, "not compared with the key ring, which cannot be read", advice: "fix that first")
        }
    }

    static func check(_ subject: String, keyRing: KeyRingSummary, keysInUse: [KeyID: Int]) -> Diagnosis {
        let missing = keyRing.missingKeys(of: keysInUse)
        guard missing.isEmpty else {
            let tokens = missing.reduce(0) { $0 + (keysInUse[$1] ?? 0) }
            return .fault(
                subject,
                """
                \(KeyListing.tokens(tokens)) sealed with \(missing.map(\.description).joined(separator: ", ")), which the \
                ring lacks, cannot be opened
                """,
                advice: "restore the key ring from a backup, or have those users sign in again"
            )
        }
        return .ok(subject, keysInUse.isEmpty ? "nothing is sealed yet" : "all are in the ring")
    }
}
