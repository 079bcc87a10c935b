/// The state of a write-ahead log at one moment.
struct LogState: Hashable, Sendable {
    /// The length, in frames, at which a log is copied into its database file: 16 MB.
    ///
    /// A page that many commits write, as those of the due index, goes into the file once in each 16 MB of log.
    static let greatestLength = 4000
    /// The same for the leases, whose file has few pages.
    static let greatestLeaseLength = 1000

    /// Names this run of the log, from its beginning until it starts again.
    var salts: UInt64
    /// The number of frames that are committed.
    var frames: Int
    /// The number of frames that are copied into the database file.
    var copied: Int
    var pageSize: Int

    var isCopied: Bool { copied == frames }

    /// The smallest size of the log's file, in bytes (https://sqlite.org/fileformat2.html#walformat).
    var size: Int { frames == 0 ? 0 : 32 + frames * (24 + pageSize) }
}
