package import Base
package import Crypto
private import Glibc

/// The metadata of a file, without opening it.
///
/// Opening and closing a database file would drop the locks that SQLite has on it in the same process
/// (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
package struct FileStatus: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        case regular
        case folder
        case other
    }

    package var kind: Kind
    /// The twelve permission bits.
    package var permissions: UInt32
    package var owner: UInt32
    package var size: Int64
    package var modifiedAt: Timestamp

    /// The permission bits as `chmod` takes them.
    package var mode: String {
        let digits = String(permissions, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// Returns the facts of the file that a path leads to, following symbolic links; `nil` if the file does not exist.
    package static func of(_ path: String) throws(SystemCallError) -> FileStatus? {
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

    /// Returns the absolute path of an existing file with all links resolved; any other path is returned unchanged.
    package static func absolute(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// Returns the path that symbolic links lead to; nothing has to exist there.
    package static func linkedPath(_ path: String) -> String {
        var path = path
        // As many as the kernel follows.
        for _ in 0..<40 {
            var target = [CChar](repeating: 0, count: Int(PATH_MAX))
            let length = unsafe readlink(path, &target, target.count)
            guard length > 0 else { break }
            let text = String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            path = text.hasPrefix("/") ? text : "\(folder(of: path))/\(text)"
        }
        return path
    }

    package static func mayRead(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

    package static func mayWrite(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }

    /// Returns the folder of the path's last part.
    package static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns the number of bytes that this user may still write to the disk that holds the path.
    package static func freeSpace(at path: String) throws(SystemCallError) -> Int64 {
        var facts = statvfs()
        guard unsafe statvfs(path, &facts) == 0 else {
            throw SystemCallError(call: "statvfs of \(path)", code: errno)
        }
        let (bytes, overflows) = Int64(clamping: facts.f_bavail).multipliedReportingOverflow(by: Int64(facts.f_frsize))
        return overflows ? .max : bytes
    }
}
