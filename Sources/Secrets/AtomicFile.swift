private import Glibc

/// Files that appear whole or not at all, also when the machine stops halfway.
///
/// The content goes into a temporary file beside the target, reaches the disk there, and then takes the target's name.
enum AtomicFile {
    /// Makes a file that must not exist yet; fails with `EEXIST` when it does.
    static func create(path: String, content: Secret, temporary: String) throws(SystemCallError) {
        try write(content, to: temporary, permissions: 0o600) { () throws(SystemCallError) in
            // Unlike a rename, a link never takes the place of another file.
            try systemCall("link") { unsafe link(temporary, path) }
            try systemCall("unlink") { unsafe unlink(temporary) }
        }
        try synchronizeFolder(of: path)
    }

    /// Puts another content in a file's place.
    ///
    /// The caller holds the file's lock, so a temporary file that is there already was left behind by a crash.
    static func replace(path: String, content: Secret, permissions: UInt32) throws(SystemCallError) {
        let temporary = path + ".new"
        do throws(SystemCallError) {
            try systemCall("unlink") { unsafe unlink(temporary) }
        } catch {
            guard error.code == ENOENT else { throw error }
        }
        try write(content, to: temporary, permissions: permissions) { () throws(SystemCallError) in
            try systemCall("rename") { unsafe rename(temporary, path) }
        }
        try synchronizeFolder(of: path)
    }

    /// The path with every symbolic link in it followed.
    static func resolve(_ path: String) throws(SystemCallError) -> String {
        guard let resolved = unsafe realpath(path, nil) else {
            throw SystemCallError(call: "realpath", code: errno)
        }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    private static func write(
        _ content: Secret,
        to temporary: String,
        permissions: UInt32,
        thenName: () throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        let file = try OpenFile(path: temporary, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        do throws(SystemCallError) {
            try file.setPermissions(permissions)
            try file.write(content)
            try file.synchronize()
            try thenName()
        } catch {
            // Whether it goes or not, the first failure is the one to report.
            unsafe unlink(temporary)
            throw error
        }
    }

    /// A new name is on the disk only once its folder is (https://man7.org/linux/man-pages/man2/fsync.2.html).
    private static func synchronizeFolder(of path: String) throws(SystemCallError) {
        let folder: String
        switch path.lastIndex(of: "/") {
        case nil: folder = "."
        case path.startIndex?: folder = "/"
        case let slash?: folder = String(path[..<slash])
        }
        try OpenFile(path: folder, flags: O_RDONLY | O_DIRECTORY).synchronize()
    }
}
