private import Glibc

/// The first hundred bytes of a database file (https://sqlite.org/fileformat.html#the_database_header).
///
/// Read it only while this process has no connection to the file: see ``FileStatus``. The newest pages may still be in
/// the log next to it; then the header is older.
struct DatabaseHeader: Equatable, Sendable {
    private static let length = 100
    private static let magic = Array("SQLite format 3\0".utf8)
    private static let versionOffset = 60

    /// The version of this program's tables (`PRAGMA user_version`); 0 before they exist.
    let schema: Int

    /// Parses the beginning of a file's content; `nil` if that is not a SQLite database.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.length, bytes.starts(with: Self.magic) else { return nil }
        schema = bytes[Self.versionOffset..<Self.versionOffset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    /// Reads the header of a file; `nil` if it cannot be read or is not a database.
    static func read(_ path: String) -> DatabaseHeader? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: length)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        }
        return DatabaseHeader(Array(bytes.prefix(max(0, count))))
    }
}
