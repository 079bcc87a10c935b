import Base

/// When `--key-command` runs again: if the file of the key ring is another one, if a reload asks for it, and some time
/// after it failed.
struct KeyCommandSchedule: Equatable, Sendable {
    /// The file as it was at one moment.
    struct FileVersion: Equatable, Sendable {
        let inode: UInt64
        let size: Int64
        /// Nanoseconds since 1970.
        let modifiedAt: Int64
    }

    static let firstPause: Duration = .seconds(10)
    /// Soon enough that the alarm ends while somebody looks, and rare enough that a KMS does not throttle its other
    /// callers.
    static let maximumPause: Duration = .seconds(300)

    /// The file that the last run read, or `nil` if there was none.
    private var version: FileVersion?
    private var isRequested = false
    private var pause = firstPause
    /// When a failed run is repeated.
    private var retryAt: BootInstant?

    func isDue(for current: FileVersion?, at now: BootInstant) -> Bool {
        if isRequested || current != version { return true }
        guard let retryAt else { return false }
        return retryAt <= now
    }

    /// Lets the next check find the run due.
    mutating func request() { isRequested = true }

    /// Records that a run begins with this file.
    ///
    /// A request or a change of the file that comes later takes another run.
    mutating func began(with current: FileVersion?) {
        version = current
        isRequested = false
        retryAt = nil
    }

    mutating func succeeded() { pause = Self.firstPause }

    mutating func failed(at now: BootInstant) {
        retryAt = now + pause
        pause = min(pause * 2, Self.maximumPause)
    }
}

extension KeyCommandSchedule.FileVersion {
    /// Reads the file, and returns `nil` if it does not exist or this user cannot see it.
    init?(of path: String) {
        guard let file = FileIdentity(path: path) else { return nil }
        self.init(inode: file.inode, size: file.size, modifiedAt: file.modifiedAt)
    }
}
