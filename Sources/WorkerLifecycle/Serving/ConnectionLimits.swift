/// The number of connections each listener may hold, so that public clients leave descriptors for the worker itself.
struct ConnectionLimits: Equatable, Sendable {
    /// The descriptors that the worker itself needs at most: the database, logs, the threads' own, and 64 connections
    /// to Google.
    private static let filesOfOurOwn = 128
    /// Ten thousand idle public clients must not keep others out.
    private static let mostStrangers = 20_000
    private static let mostServices = 4096
    private static let fewest = 16

    let ofStrangers: Int
    let ofServices: Int

    /// - Parameter openFiles: The limit of descriptors of the process.
    init(openFiles: Int) {
        let spare = openFiles - Self.filesOfOurOwn
        ofServices = min(max(spare / 4, Self.fewest), Self.mostServices)
        ofStrangers = min(max(spare - ofServices, Self.fewest), Self.mostStrangers)
    }
}
