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

    static let maximumLinks = 40  // as many as the kernel follows

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

    /// Returns the absolute path of an existing file with all links resolved.
    ///
    /// Any other path is returned unchanged.
    static func absolute(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// Returns the absolute path, in which links stay.
    ///
    /// A file that is restored to this path is found under the configured name, on a machine without these links too.
    static func restorable(_ path: String) -> String {
        var parts: [Substring] = []
        for part in (path.hasPrefix("/") ? path : "\(absolute("."))/\(path)").split(separator: "/") where part != "." {
            // tar restores no path that has this part.
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// Returns the path that symbolic links lead to.
    ///
    /// Nothing has to exist there.
    static func linkedPath(_ path: String) -> String {
        var path = path
        for _ in 0..<maximumLinks {
            let text = link(path)
            guard !text.isEmpty else { break }
            path = text.hasPrefix("/") ? text : "\(path.parentFolder)/\(text)"
        }
        return path
    }

    /// Returns what a symbolic link holds, or an empty text if it cannot be read.
    static func link(_ path: String) -> String {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = unsafe readlink(path, &target, target.count)
        return String(decoding: target.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func mayRead(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

    static func mayWrite(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }
}
