private import Glibc

/// A folder and what it holds.
package enum Folder {
    /// Returns the number of bytes that this user can still write to the disk that holds the folder.
    package static func freeSpace(in path: String) throws(SystemCallError) -> Int64 {
        var facts = statvfs()
        guard unsafe statvfs(path, &facts) == 0 else {
            throw SystemCallError(call: "statvfs of \(path)", code: errno)
        }
        let (bytes, overflows) = Int64(clamping: facts.f_bavail).multipliedReportingOverflow(by: Int64(facts.f_frsize))
        return overflows ? .max : bytes
    }

    /// Synchronizes the folder of a file, because a new name is durable only then
    /// (https://man7.org/linux/man-pages/man2/fsync.2.html).
    package static func synchronize(of path: String) throws(SystemCallError) {
        let folder = path.parentFolder
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemCallError(call: "open of \(folder)", code: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemCallError(call: "fsync of \(folder)", code: errno) }
    }

    /// Renames a complete temporary file, durably, and never replaces another file.
    ///
    /// By a hard link, because a rename replaces a file that has appeared since a check. A file system without hard
    /// links, such as FAT, leaves no other way.
    package static func publish(_ temporary: String, as path: String) throws(SystemCallError) {
        if unsafe link(temporary, path) == 0 {
            guard unsafe unlink(temporary) == 0 else {
                throw SystemCallError(call: "unlink of \(temporary)", code: errno)
            }
        } else {
            let code = errno
            var status = stat()
            guard [EPERM, EOPNOTSUPP, ENOSYS].contains(code), unsafe lstat(path, &status) != 0 else {
                throw SystemCallError(call: "link to \(path)", code: code)
            }
            guard unsafe rename(temporary, path) == 0 else {
                throw SystemCallError(call: "rename to \(path)", code: errno)
            }
        }
        try synchronize(of: path)
    }

    /// Returns the names in a folder, sorted, or none if the folder does not exist.
    package static func names(in folder: String) throws(SystemCallError) -> [String] {
        guard let stream = unsafe opendir(folder) else {
            guard errno == ENOENT else { throw SystemCallError(call: "opendir of \(folder)", code: errno) }
            return []
        }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            names.append(name)
        }
        return names.sorted()
    }
}
