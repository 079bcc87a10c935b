private import Glibc

/// What stands in the first hundred bytes of a database file (https://sqlite.org/fileformat.html#the_database_header).
///
/// Read it only while this process has no connection to the file: see ``FileFacts``. The newest pages may still be in
/// the log beside it; then the header is of an older moment.
struct DatabaseHeader: Equatable, Sendable {
    private static let length = 100
    private static let title = Array("SQLite format 3\0".utf8)
    private static let versionOffset = 60

    /// The version that this program numbers its tables by (`PRAGMA user_version`); 0 before it has made them.
    let schema: Int

    /// Reads the beginning of a file's content; `nil` when that is no SQLite database.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.length, bytes.starts(with: Self.title) else { return nil }
        schema = bytes[Self.versionOffset..<Self.versionOffset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    /// The header of a file; `nil` when it cannot be read or is no database's.
    static func read(_ path: String) -> DatabaseHeader? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: length)
        let count = unsafe bytes.withUnsafeMutableBytes { room in
            unsafe Glibc.read(descriptor, room.baseAddress, room.count)
        }
        return DatabaseHeader(Array(bytes.prefix(max(0, count))))
    }
}
