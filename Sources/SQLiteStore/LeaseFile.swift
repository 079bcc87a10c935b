private import Glibc
import Store

/// The file next to the database that holds the leases of this boot.
///
/// Leases need no sync: a crash of the machine ends them anyway. They must not share a write-ahead log with results,
/// because of the effect of a failed sync: a commit without sync puts its frames into the index of the log, so no later
/// commit writes them again, and after a power cut recovery stops at the pages that the failed sync has lost
/// (docs/decisions/0001-leases-in-a-file-of-their-own.md).
///
/// The file's name holds the id of the boot, so a file that a crash has damaged is never used again. A symbolic link is
/// resolved first, so that all processes find the same file.
struct LeaseFile: Sendable {
    /// The name under which connections attach the file.
    static let schema = "boot"

    let path: String
    private let database: String
    private let name: String

    init(of database: String, bootID: String) {
        self.database = DatabaseFile.resolved(database)
        let isPlain = { (character: Character) in character.isASCII && (character.isLetter || character.isNumber) }
        name = String(bootID.map { isPlain($0) || $0 == "-" ? $0 : "_" })
        path = Self.prefix(of: self.database) + name
    }

    /// Returns the common prefix of the names of all lease files of a database.
    static func prefix(of database: String) -> String { database + "-leases-" }

    /// Creates the file if necessary, and removes those of earlier boots.
    ///
    /// In a container with a boot id of its own, a process may see another id than a running worker. Without the leases
    /// of each other, both would send the same grants.
    func prepare() throws(StoreError) {
        let (folder, file) = DatabaseFile.split(Self.prefix(of: database))
        let former = DatabaseFile.names(in: folder)
            .filter { $0.hasPrefix(file) && isOfAnotherBoot($0.dropFirst(file.count)) }
            .map { folder + "/" + $0 }
        // A connection keeps a lock on the shared index for as long as it is open.
        if let used = former.first(where: { $0.hasSuffix("-shm") && DatabaseFile.isLocked($0) }) {
            throw StoreError(
                .inUse,
                "A process that sees another boot id has the database \(database) open: it uses \(used). This process "
                    + "sees the boot id \(name). See \"Containers\" in running.md."
            )
        }
        try DatabaseFile.create(path, unlessExists: true)
        for path in former { DatabaseFile.remove(path) }
    }

    /// Returns `true` for the id of another boot, with or without SQLite's endings.
    ///
    /// Files with other names are left alone.
    private func isOfAnotherBoot(_ rest: Substring) -> Bool {
        var id = rest
        for ending in ["-wal", "-shm", "-journal"] where id.hasSuffix(ending) { id = id.dropLast(ending.count) }
        let isBootID = id.utf8.count == 36 && id.allSatisfy { $0.isHexDigit || $0 == "-" }
        return isBootID && id != name
    }
}

extension Query {
    static let makeLeases = Query(
        "make leases",
        """
        CREATE TABLE IF NOT EXISTS \(LeaseFile.schema).leases (
            grant_id INTEGER PRIMARY KEY,
            owner TEXT NOT NULL,
            claim INTEGER NOT NULL,
            epoch TEXT NOT NULL,
            until INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE IF NOT EXISTS \(LeaseFile.schema).checkpoints (
            id INTEGER PRIMARY KEY CHECK (id = 0),
            number INTEGER NOT NULL,
            is_running INTEGER NOT NULL,
            size INTEGER NOT NULL,
            modified_at INTEGER NOT NULL,
            digest INTEGER
        ) STRICT;
        INSERT OR IGNORE INTO \(LeaseFile.schema).checkpoints VALUES (0, 0, 0, 0, 0, NULL);
        """
    )
    /// Removes leases of grants that were deleted, and of workers that were killed.
    static let removeEndedLeases = Query(
        "remove ended leases",
        "DELETE FROM \(LeaseFile.schema).leases WHERE epoch = ?1 AND until <= ?2"
    )
}
