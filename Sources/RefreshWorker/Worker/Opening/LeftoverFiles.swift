import Base

/// The files that a SQLite database in use leaves beside it.
///
/// If the database itself is missing, they show that there was one: it was deleted or moved, or a file system is not
/// mounted over this folder.
enum LeftoverFiles {
    /// The ends of names such as `grants.sqlite-wal`.
    private static let suffixes = ["-wal", "-shm", ".reserve"]
    /// The middles of names such as `grants.sqlite-leases-4fd…`.
    private static let suffixBeginnings = ["-leases-", ".unsaved-", ".writing-", ".set-aside-"]

    /// Returns those of the names in a folder that belong to the database of this name.
    static func names(ofDatabase database: String, among names: [String]) -> [String] {
        names.filter { name in
            guard name.hasPrefix(database) else { return false }
            let rest = String(name.dropFirst(database.count))
            return suffixes.contains(rest) || suffixBeginnings.contains { rest.hasPrefix($0) }
        }
    }

    /// Returns the names of the files beside a database that does not exist, or none beside one that does.
    static func besideMissing(_ path: String) throws(SystemCallError) -> [String] {
        guard try FileStatus.of(path) == nil else { return [] }
        // SQLite keeps the other files beside the file that a link names.
        let path = PathResolver.followingLinks(path)
        let found = names(ofDatabase: path.fileName, among: try Folder.names(in: path.parentFolder))
        // Another process might have created the database since.
        return try FileStatus.of(path) == nil ? found : []
    }

    /// The problem of a missing database with leftovers.
    static func finding(_ path: String, leftovers: [String]) -> String {
        "the database \(path) is missing, although files of it are there (\(leftovers.joined(separator: ", ")))"
    }

    static let advice = """
        mount its disk, or restore it (docs/runbook.md#the-database-is-lost); to begin with an empty database instead, \
        move these files to another folder first
        """
}

extension CommandError {
    init(_ leftovers: [String], besideMissing path: String) {
        self.init(.configuration, "\(LeftoverFiles.finding(path, leftovers: leftovers)): \(LeftoverFiles.advice)")
    }
}
