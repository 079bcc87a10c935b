private import Glibc

/// A file, whatever its name: two values are equal if they are the same file.
package struct FileIdentity: Hashable, Sendable {
    package let device: UInt64
    package let inode: UInt64
    package let isRegular: Bool
    package let size: Int64
    package let permissions: UInt32
    package let owner: UInt32
    /// Nanoseconds since 1970.
    package let modifiedAt: Int64

    /// Reads the file behind an open descriptor, or returns `nil` and sets `errno` if it is not open.
    package init?(descriptor: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Reads the file that a path currently names, or returns `nil` and sets `errno` if there is none.
    package init?(path: String) {
        var status = stat()
        // An implicit conversion would allocate a copy of the path.
        guard unsafe path.withCString({ unsafe stat($0, &status) }) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        isRegular = status.st_mode & S_IFMT == S_IFREG
        size = Int64(status.st_size)
        permissions = status.st_mode & 0o7777
        owner = status.st_uid
        modifiedAt = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
    }

    /// The file in the format of `JOURNAL_STREAM`.
    package var journalStream: String { "\(device):\(inode)" }

    package static func == (left: FileIdentity, right: FileIdentity) -> Bool {
        left.device == right.device && left.inode == right.inode
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(inode) }
}

/// The reason why a file cannot be used: what is wrong with it, and what to do.
///
/// It never quotes the file, which can hold a secret.
package struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What a caller decides by.
    package enum Kind: Hashable, Sendable {
        case missing
        case folderMissing
        /// A system call failed with this `errno`.
        case system(Int32)
        /// A library failed, which says nothing about the file.
        case library
        /// The file's content, owner or permissions.
        case unfit
    }

    package let description: String
    package let kind: Kind
    /// The path, if the file has one.
    package let path: String?

    package init(_ description: String, _ kind: Kind = .unfit, path: String? = nil) {
        self.description = description
        self.kind = kind
        self.path = path
    }

    /// `true` if the same file might be usable later without a change by the operator.
    package var mayPass: Bool {
        if case .system(let code) = kind { Self.mayPass(code) } else { false }
    }

    /// `true` if a call that failed with this `errno` might succeed later without a change by the operator.
    package static func mayPass(_ code: Int32) -> Bool { [EIO, EMFILE, ENFILE, ENOMEM, EAGAIN].contains(code) }
}

/// A failed call of the system and its error.
package struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call, and the file if the message needs one: "open of /etc/keys".
    package let call: String
    /// The `errno` value of the failure.
    package let code: Int32

    package init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// `true` if the same call might succeed later without a change by the operator.
    package var mayPass: Bool { FileError.mayPass(code) }

    /// The system's text for the error.
    ///
    /// glibc's `strerror` is thread-safe since 2.32 (https://man7.org/linux/man-pages/man3/strerror.3.html).
    package var reason: String { unsafe String(cString: strerror(code)) }

    package var description: String { "\(call) failed: \(reason)" }
}

extension String {
    /// The folder of the path's last part.
    package var parentFolder: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }

    /// The path's last part.
    package var fileName: String {
        lastIndex(of: "/").map { String(self[index(after: $0)...]) } ?? self
    }
}

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
