import Base
import Storage
import Telemetry

/// The ways to open a database. Most commands need one of these, which open the configured database, refuse an
/// incomplete one, and a moved one unless they only read, and then take care of its spill files:
///
/// - ``openStore(onUpgrade:)``: makes the database if there is none. The worker, and commands that add.
/// - ``withExistingStore(for:_:)``: the database must exist, and is closed after the body. Most other commands.
/// - ``openExistingStore(for:)``: the same for a command that closes the database itself, such as one with a heartbeat.
/// - ``openStoreIfThere(for:)``: `nil` if there is no database, which is no error for the command.
/// - ``openStore(forDryRun:)``: an import, whose dry run must not make the database.
///
/// The others check nothing of that. They are for commands about a database itself:
///
/// - ``open(_:time:makesTables:for:onUpgrade:)``: any location, in whatever state it is, to copy or check it.
/// - ``openFile(_:time:for:onUpgrade:)``: an SQLite file that is known to exist, to back it up or check it.
extension CommandContext {
    /// Opens the database and creates its tables if there are none.
    ///
    /// `onUpgrade` is called before an older database is upgraded, which can take minutes.
    func openStore(onUpgrade: @escaping @Sendable () -> Void = {}) async throws -> any Store {
        let store = try await open(configuration.database, time: time, makesTables: true, onUpgrade: onUpgrade)
        guard let store else {
            preconditionFailure("a database that can be created is never missing")
        }
        return try await checkAndRecover(store, for: .changing)
    }

    /// Opens the database for a command that needs an existing one and must not create it.
    func openExistingStore(for use: DatabaseAccess) async throws -> any Store {
        guard let store = try await openStoreIfThere(for: use) else {
            throw CommandError(missing: configuration.database)
        }
        return store
    }

    func openStoreIfThere(for use: DatabaseAccess) async throws -> (any Store)? {
        let database = configuration.database
        guard let store = try await open(database, time: time, makesTables: false, for: use) else { return nil }
        return try await checkAndRecover(store, for: use)
    }

    /// Opens the database, or returns `nil` if a dry run would have to create it.
    ///
    /// Such a dry run finds no record stored.
    func openStore(forDryRun isDryRun: Bool) async throws -> (any Store)? {
        isDryRun ? try await openStoreIfThere(for: .reading) : try await openStore()
    }

    /// Runs `body` with the database and closes the database in every case.
    func withExistingStore<Result>(
        for use: DatabaseAccess,
        _ body: (any Store) async throws -> Result
    ) async throws -> Result {
        let store = try await openExistingStore(for: use)
        return try await store.closing { try await body(store) }
    }

    /// Opens a database, complete or not.
    ///
    /// It returns `nil` if the database does not exist and must not be created.
    ///
    /// It throws if the SQLite file is missing but other files of it exist: the database was lost, and an empty one
    /// must not replace it.
    func open(
        _ location: DatabaseLocation,
        time: any TimeSource,
        makesTables: Bool,
        for use: DatabaseAccess = .changing,
        onUpgrade: @escaping @Sendable () -> Void = {}
    ) async throws -> (any Store)? {
        switch location {
        case .file(let path):
            let leftovers = try await BlockingCallQueue.files.run { try LeftoverFiles.besideMissing(path) }
            guard leftovers.isEmpty else { throw CommandError(leftovers, besideMissing: path) }
            guard makesTables || inputs.files.exists(path) else { return nil }
            return try await openFile(path, time: time, for: use, onUpgrade: onUpgrade)
        case .server(let address):
            return try await openServer(address, time: time, makesTables: makesTables)
        }
    }

    func openFile(
        _ path: String,
        time: any TimeSource,
        for use: DatabaseAccess = .changing,
        onUpgrade: @escaping @Sendable () -> Void = {}
    ) async throws -> SQLiteStore {
        let keepsNotices = configuration.noticeURL != nil
        return try await BlockingCallQueue.files.run {
            try SQLiteStore(
                path: path,
                timeSource: time,
                random: random,
                keepsNotices: keepsNotices,
                onlyReads: use == .reading
            ) { from, to in
                diagnostics.notice(
                    "bringing the database up to date; with millions of grants this takes minutes",
                    ["database": path, "from": "\(from)", "to": "\(to)"]
                )
                onUpgrade()
            }
        }
    }

    /// Refuses an incomplete database, and any use but reading of one that was moved elsewhere. Then stores the results
    /// of its spill files.
    private func checkAndRecover(_ store: any Store, for use: DatabaseAccess) async throws -> any Store {
        let location = configuration.database
        do {
            if try await store.isReceiving { throw CommandError(unfinished: location) }
            guard let newLocation = try await store.movedTo else {
                try await SpillRecovery(self).recoverAll(into: store, of: location, use: use)
                return store
            }
            guard use == .reading else { throw StoreError(moved: "\(location)", to: newLocation) }
            diagnostics.warning(
                "this database was moved elsewhere; these are its contents of that time",
                ["moved_to": newLocation]
            )
            return store
        } catch {
            await store.close()
            throw error
        }
    }

    /// Opens the store on a server.
    ///
    /// It returns `nil` if the database has no tables and this call must not create them.
    private func openServer(
        _ address: DatabaseAddress,
        time: any TimeSource,
        makesTables: Bool
    ) async throws -> PostgresStore? {
        if !makesTables, try await ServerFacts.read(address, time: SystemTime()).schema == nil { return nil }
        return try await PostgresStore(
            at: address,
            clock: time as? DatabaseClock ?? DatabaseClock(local: time),
            random: random,
            keepsNotices: configuration.noticeURL != nil
        )
    }
}
