import Glibc

extension FileStatus {
    /// Returns the version of this program's tables (`PRAGMA user_version`), 0 before they exist, or `nil` if the file
    /// cannot be read or is not a database (https://sqlite.org/fileformat.html#the_database_header).
    ///
    /// Call it only while this process has no connection to the file: see ``FileStatus``. The newest pages can still be
    /// in the log next to it. Then the header is older.
    static func schema(ofDatabaseFile path: String) -> Int? {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        var header = [UInt8](repeating: 0, count: 100)
        let count = unsafe Glibc.read(descriptor, &header, header.count)
        guard count == header.count, header.starts(with: Array("SQLite format 3\0".utf8)) else { return nil }
        return header[60..<64].reduce(0) { $0 << 8 | Int($1) }
    }
}
