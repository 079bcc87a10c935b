import Base

/// When `--key-command` runs again.
///
/// - At once if the file of the key ring is another one, or a reload asks for it.
/// - Again and again, with growing pauses, while it fails or the ring does not fit: it lacks keys of other workers or of
///   stored tokens. A program that gets the ring from somewhere else has no file that changes.
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
    private var hasFailed = false
    private var isUnfit = false
    private var pause = firstPause
    /// The end of the last run, or `nil` while it runs.
    private var endedAt: BootInstant?

    private var mustRepeat: Bool { hasFailed || isUnfit }

    func isDue(for current: FileVersion?, at now: BootInstant) -> Bool {
        if isRequested || current != version { return true }
        guard mustRepeat, let endedAt else { return false }
        return endedAt + pause <= now
    }

    /// Lets the next check find the run due.
    mutating func request() { isRequested = true }

    /// Records if the ring that was printed last does not fit.
    mutating func observe(isUnfit: Bool) {
        self.isUnfit = isUnfit
        if !mustRepeat { pause = Self.firstPause }
    }

    /// Records that a run begins with this file.
    ///
    /// A request or a change of the file that comes later takes another run.
    mutating func began(with current: FileVersion?) {
        version = current
        isRequested = false
        endedAt = nil
        if mustRepeat { pause = min(pause * 2, Self.maximumPause) }
    }

    mutating func ended(hasFailed: Bool, at now: BootInstant) {
        self.hasFailed = hasFailed
        endedAt = now
        if !mustRepeat { pause = Self.firstPause }
    }
}

extension KeyCommandSchedule.FileVersion {
    /// Reads the file, and returns `nil` if it does not exist or this user cannot see it.
    init?(of path: String) {
        guard let file = FileIdentity(path: path) else { return nil }
        self.init(inode: file.inode, size: file.size, modifiedAt: file.modifiedAt)
    }
}
