/// The state of a write-ahead log at one time.
struct LogState: Hashable, Sendable {
    /// The length, in frames, at which a log is copied into its database file: 16 MB.
    ///
    /// A page that many commits write, such as one of the due index, is copied once for each 16 MB of log.
    static let checkpointLength = 4000
    /// The same for the leases, whose file has few pages.
    static let leaseCheckpointLength = 1000

    /// The identity of this run of the log, from its beginning until it is restarted.
    var salts: UInt64
    /// The number of committed frames.
    var frames: Int
    /// The number of frames that are copied into the database file.
    var copied: Int
    var pageSize: Int

    var isCopied: Bool { copied == frames }

    /// The smallest size of the log's file, in bytes (https://sqlite.org/fileformat2.html#walformat).
    var size: Int { frames == 0 ? 0 : 32 + frames * (24 + pageSize) }
}
