internal import Base
private import Glibc

/// Writes files atomically: a file appears complete or not at all, even if the machine stops in between.
///
/// The content is written to a temporary file next to the target and synced to disk. The temporary file then gets the
/// target's name.
extension OpenFile {
    /// Creates a file, and fails with `EEXIST` if it exists already.
    static func create(path: String, content: Secret, temporary: String) throws(SystemCallError) {
        try write(content, to: temporary, permissions: 0o600) { () throws(SystemCallError) in
            try Folder.publish(temporary, as: path)
        }
    }

    /// Replaces the content of a file.
    ///
    /// The caller holds the file's lock, so an existing temporary file was left behind by a crash.
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
        try Folder.synchronize(of: path)
    }

    /// Resolves every symbolic link in the path.
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
        publish: () throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        let file = try OpenFile(path: temporary, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        do throws(SystemCallError) {
            try file.setPermissions(permissions)
            try file.write(content)
            try file.synchronize()
            try publish()
        } catch {
            // The first failure is reported, even if the removal fails too.
            unsafe unlink(temporary)
            throw error
        }
    }
}
