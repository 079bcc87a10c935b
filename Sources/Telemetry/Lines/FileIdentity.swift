private import Glibc

/// The identity of a file, whatever its name: device and inode.
struct FileIdentity: Equatable {
    let device: UInt64
    let inode: UInt64
    let isRegular: Bool
    let size: Int64

    /// Reads the file behind an open descriptor; `nil` if it is not open.
    init?(descriptor: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Reads the file that a path currently names; `nil` if there is none.
    init?(path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        isRegular = status.st_mode & S_IFMT == S_IFREG
        size = Int64(status.st_size)
    }

    /// The file in the format of `JOURNAL_STREAM`.
    var journalStream: String { "\(device):\(inode)" }

    static func == (left: FileIdentity, right: FileIdentity) -> Bool {
        left.device == right.device && left.inode == right.inode
    }
}
