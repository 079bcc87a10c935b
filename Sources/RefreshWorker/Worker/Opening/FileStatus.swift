import Base
import Glibc

/// The metadata of a file, without opening it, except for the schema of a database that no other part has open.
///
/// Opening and closing a database file would drop the locks that SQLite has on it in the same process
/// (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
struct FileStatus: Equatable, Sendable {
    enum Kind: Equatable, Sendable {
        case regular
        case folder
        case other
    }

    var kind: Kind
    /// The twelve permission bits.
    var permissions: UInt32
    var owner: UInt32
    var size: Int64
    var modifiedAt: Timestamp

    /// The permission bits as `chmod` takes them.
    var mode: String {
        let digits = String(permissions, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// Returns the facts of the file that a path leads to, following symbolic links, or `nil` if the file does not
    /// exist.
    static func of(_ path: String) throws(SystemCallError) -> FileStatus? {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR else {
                throw SystemCallError(call: "stat of \(path)", code: code)
            }
            return nil
        }
        let kind: Kind =
            switch facts.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .folder
            default: .other
            }
        return FileStatus(
            kind: kind,
            permissions: facts.st_mode & 0o7777,
            owner: facts.st_uid,
            size: Int64(facts.st_size),
            modifiedAt: Timestamp(
                milliseconds: Int64(facts.st_mtim.tv_sec) * 1000 + Int64(facts.st_mtim.tv_nsec) / 1_000_000
            )
        )
    }

    static func mayRead(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

    static func mayWrite(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }
}
