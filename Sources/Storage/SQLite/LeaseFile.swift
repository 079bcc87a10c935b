import Base
private import Glibc

/// The file next to the database that holds the leases of this boot.
///
/// Leases need no sync: a crash of the machine ends them anyway. They must not share a write-ahead log with results,
/// because of the effect of a failed sync: a commit without sync puts its frames into the index of the log, so no later
/// commit writes them again, and after a power cut recovery stops at the pages that the failed sync has lost
/// (docs/decisions/0001-leases-in-a-file-of-their-own.md).
///
/// The file's name holds the id of the boot, so a file that a crash has damaged is never used again. A symbolic link is
/// resolved first, so that all processes find the same file.
///
/// The file holds nothing that has to last. If it, its shared index or its log is deleted, if it is damaged, or if
/// another file is in its place, the next writer makes a new one, in which nothing is claimed for a while. Example: A
/// claims a grant, and the file is deleted. B makes a new file, which lacks A's lease. B claims after 30 seconds, when
/// A's lease has ended. The other file is renamed to `….set-aside`, because a person might have misnamed it.
struct LeaseFile: Sendable {
    /// The name under which connections attach the file.
    static let schema = "boot"

    /// The files that a connection has open, as far as it knows.
    struct Identity: Hashable, Sendable {
        var file: FileIdentity?
        /// SQLite replaces it only after every connection has closed it.
        var index: FileIdentity?
        /// `nil` before the first commit.
        var log: FileIdentity?

        /// `true` if these are the files of `opened`, which can have gained a log since.
        func continues(_ opened: Identity) -> Bool {
            guard file == opened.file, index == opened.index else { return false }
            return opened.log == nil || log == opened.log
        }
    }

    let path: String
    private let database: String
    private let name: String
    private let incidents: IncidentLog

    init(of database: String, bootID: String, incidents: IncidentLog = IncidentLog()) {
        self.incidents = incidents
        self.database = DatabaseFile.resolved(database)
        name = String(bootID.map { Self.canStand($0) ? $0 : "_" })
        path = Self.prefix(of: self.database) + name
    }

    private static func canStand(_ character: Character) -> Bool {
        if character == "-" { return true }
        return character.isASCII && (character.isLetter || character.isNumber)
    }

    /// Returns the common prefix of the names of all lease files of a database.
    static func prefix(of database: String) -> String { database + "-leases-" }

    var identity: Identity {
        get throws(StoreError) {
            Identity(
                file: try DatabaseFile.identity(of: path),
                index: try DatabaseFile.identity(of: path + "-shm"),
                log: try DatabaseFile.identity(of: DatabaseFile.log(of: path))
            )
        }
    }

    /// `false` if the file is damaged, or is another one than the file that was made at this path.
    ///
    /// It holds its own inode, which a copy does not have. Example: someone copies the leases of a minute ago over the
    /// file. The leases since then would be missing, and their grants would be sent twice.
    ///
    /// A file that version 0.1.0 has made holds no inode, and its tables have to do.
    func isUsable(timeout: Duration) throws(StoreError) -> Bool {
        guard let file = try identity.file else { return false }
        try DatabaseFile.refuseLinksAsRoot(beside: path)
        do throws(StoreError) {
            let connection = try SQLiteConnection(path: path, timeout: timeout)
            connection.keepLogOnClose(true)
            guard try connection.integer(.countLeaseColumns) == SQLQuery.leaseColumns else { return false }
            guard try connection.integer(.countOriginTables) > 0 else { return true }
            guard let origin = try connection.first(.readOrigin, read: { $0.integer() }) else { return true }
            return origin == file.inodeNumber
        } catch {
            guard error.code == .corrupt, SQLiteStore.isDamaged(path) else { throw error }
            return false
        }
    }

    /// Removes the files of earlier boots. In a container with a boot id of its own, a process can see another id than
    /// a running worker. Without the leases of each other, both would send the same grants.
    func removeFormer() throws(StoreError) {
        let prefix = Self.prefix(of: database)
        let (folder, file) = (prefix.parentFolder, prefix.fileName)
        let names: [String]
        do throws(SystemCallError) {
            names = try Folder.names(in: folder)
        } catch {
            // A file that is not seen could hold the leases of a running worker.
            throw DatabaseFile.failure("listing its folder", of: database, code: error.code)
        }
        let former = names.filter { $0.hasPrefix(file) && isOfAnotherBoot($0.dropFirst(file.count)) }
            .map { folder + "/" + $0 }
        // A connection keeps a lock on the shared index for as long as it is open.
        if let used = former.first(where: { $0.hasSuffix("-shm") && DatabaseFile.isLocked($0) }) {
            throw StoreError(
                .inUse,
                "A process that sees another boot id has the database \(database) open: it uses \(used). This process "
                    + "sees the boot id \(name). See \"Containers\" in operate.md."
            )
        }
        for path in former { DatabaseFile.remove(path) }
    }

    /// Makes a new file in place of the one that might be there.
    ///
    /// `former` is the file that this process has used there. The caller must exclude all other writers. The file gets
    /// its name when it is complete, because a process that follows it uses it at once. The number of its note was
    /// never used: the processes that used another file take it for that of a new checkpoint.
    func make(
        note: DatabaseFileMonitor.Note,
        claimsFrom: BootInstant?,
        replacing former: FileIdentity?
    ) throws(StoreError) {
        let temporary = path + ".new"
        DatabaseFile.remove(temporary)
        try DatabaseFile.create(temporary, unlessExists: false)
        DatabaseFile.give(temporary, toOwnerOf: database)
        try DatabaseFile.refuseLinksAsRoot(beside: temporary)
        do {
            let file = try SQLiteConnection(path: temporary, timeout: .zero)
            try file.execute(SQLQuery("prepare leases", sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY"))
            try file.execute(.makeLeases(in: "main"))
            let values = [note.number, note.size, note.modifiedAt, note.digest].map { SQLValue.integer($0) }
            try file.run(SQLStatement(.writeFirstNote, values))
            if let origin = try DatabaseFile.identity(of: temporary) {
                try file.run(.writeOrigin(in: "main")) { $0.bind(origin.inodeNumber) }
            }
            if let claimsFrom { try file.run(.writePause) { $0.bind(claimsFrom.milliseconds) } }
        }
        try setAside(unless: former)
        for ending in DatabaseFile.companionEndings { DatabaseFile.remove(path + ending) }
        try DatabaseFile.replace(path, by: temporary)
    }

    /// Renames the file at the path unless it is the former file of leases, which holds nothing that has to last.
    ///
    /// The log beside it is not kept: it can be that of the leases, and SQLite would apply it to the renamed file.
    private func setAside(unless former: FileIdentity?) throws(StoreError) {
        guard let file = try identity.file, file != former, file.size > 0 else { return }
        var place = path + ".set-aside"
        var number = 1
        while true {
            do throws(SystemCallError) {
                try Folder.publish(path, as: place)
                break
            } catch {
                guard error.code == EEXIST else {
                    throw DatabaseFile.failure("the file \(place)", of: database, code: error.code)
                }
                number += 1
                place = "\(path).set-aside-\(number)"
            }
        }
        incidents.record(.fileSetAside("another file was in the place of \(path): it is \(place) now"))
    }

    /// Returns `true` for the id of another boot, with or without SQLite's endings. Files with other names are left
    /// alone.
    private func isOfAnotherBoot(_ rest: Substring) -> Bool {
        var id = rest
        for ending in DatabaseFile.companionEndings where id.hasSuffix(ending) { id = id.dropLast(ending.count) }
        let isBootID = id.utf8.count == 36 && id.allSatisfy { $0.isHexDigit || $0 == "-" }
        return isBootID && id != name
    }
}

extension StoreIncident {
    fileprivate static func fileSetAside(_ text: String) -> StoreIncident {
        StoreIncident(kind: .fileSetAside, text: text)
    }
}

/// The file of leases that a connection has attached, as it was then.
struct AttachedLeases: Sendable {
    let leases: LeaseFile
    var identity: LeaseFile.Identity
}

extension SQLQuery {
    static func makeLeases(in schema: String) -> SQLQuery {
        SQLQuery(
            "make leases",
            sql: """
                CREATE TABLE IF NOT EXISTS \(schema).leases (
                    grant_id INTEGER PRIMARY KEY,
                    owner TEXT NOT NULL,
                    claim INTEGER NOT NULL,
                    epoch TEXT NOT NULL,
                    until INTEGER NOT NULL
                ) STRICT;
                CREATE TABLE IF NOT EXISTS \(schema).checkpoints (
                    id INTEGER PRIMARY KEY CHECK (id = 0),
                    number INTEGER NOT NULL,
                    is_running INTEGER NOT NULL,
                    size INTEGER NOT NULL,
                    modified_at INTEGER NOT NULL,
                    digest INTEGER
                ) STRICT;
                INSERT OR IGNORE INTO \(schema).checkpoints VALUES (0, 0, 0, 0, 0, NULL);
                CREATE TABLE IF NOT EXISTS \(schema).pause (claims_from INTEGER NOT NULL) STRICT;
                CREATE TABLE IF NOT EXISTS \(schema).origin (inode INTEGER NOT NULL) STRICT;
                """
        )
    }
    /// Counts the columns of the tables that every version has.
    static let countLeaseColumns = SQLQuery(
        "columns of leases",
        sql: """
            SELECT (SELECT count(*) FROM pragma_table_info('leases')
                    WHERE name IN ('grant_id', 'owner', 'claim', 'epoch', 'until'))
                + (SELECT count(*) FROM pragma_table_info('checkpoints')
                    WHERE name IN ('id', 'number', 'is_running', 'size', 'modified_at', 'digest'))
                + (SELECT count(*) FROM pragma_table_info('pause') WHERE name = 'claims_from')
            """
    )
    static let leaseColumns: Int64 = 12
    static let countOriginTables = SQLQuery(
        "table of origin",
        sql: "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'origin'"
    )
    static let readOrigin = SQLQuery("origin of leases", sql: "SELECT inode FROM origin")
    /// Writes the file's inode, unless it has one.
    static func writeOrigin(in schema: String) -> SQLQuery {
        SQLQuery(
            "note origin of leases",
            sql: "INSERT INTO \(schema).origin (inode) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM \(schema).origin)"
        )
    }
    static let writeFirstNote = SQLQuery(
        "first note",
        sql: "UPDATE checkpoints SET number = ?1, size = ?2, modified_at = ?3, digest = ?4"
    )
    static let writePause = SQLQuery("write pause of claims", sql: "INSERT INTO pause (claims_from) VALUES (?1)")
    static let readPause = SQLQuery("pause of claims", sql: "SELECT max(claims_from) FROM \(LeaseFile.schema).pause")
    /// Removes leases of grants that were deleted. A lease that has ended lately must stay: the next claim of its grant
    /// learns from it that an answer can be lost.
    static let removeEndedLeases = SQLQuery(
        "remove ended leases",
        sql: "DELETE FROM \(LeaseFile.schema).leases WHERE epoch = ?1 AND until <= ?2"
    )
}

extension FileIdentity {
    /// The inode in the form of SQLite's numbers.
    var inodeNumber: Int64 { Int64(bitPattern: inode) }
}
