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
