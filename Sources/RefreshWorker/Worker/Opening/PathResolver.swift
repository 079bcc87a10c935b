import Base
import Glibc

/// Finds out where a path leads: its absolute form, the links on the way, and who can change them.
///
/// The files themselves stay closed, for the reason that ``FileStatus`` gives.
enum PathResolver {
    static let maximumLinks = 40  // as many as the kernel follows

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
    static func followingLinks(_ path: String) -> String {
        var path = path
        for _ in 0..<maximumLinks {
            let text = linkTarget(path)
            guard !text.isEmpty else { break }
            path = text.hasPrefix("/") ? text : "\(path.parentFolder)/\(text)"
        }
        return path
    }

    /// Returns what a symbolic link holds, or an empty text if it cannot be read.
    static func linkTarget(_ path: String) -> String {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = unsafe readlink(path, &target, target.count)
        return String(decoding: target.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
