/// The number of connections each listener may hold, so that public clients leave descriptors for the worker itself.
struct ConnectionLimits: Equatable, Sendable {
    /// The descriptors that the worker itself needs at most: the database, logs, the threads' own, and 64 connections
    /// to Google.
    private static let descriptorsOfWorker = 128
    /// Ten thousand idle public clients must not lock out other clients.
    private static let maximumPublic = 20_000
    private static let maximumInternal = 4096
    private static let minimum = 16

    let publicConnections: Int
    let internalConnections: Int

    /// - Parameter openFiles: The limit of descriptors of the process.
    init(openFiles: Int) {
        let spare = openFiles - Self.descriptorsOfWorker
        internalConnections = min(max(spare / 4, Self.minimum), Self.maximumInternal)
        publicConnections = min(max(spare - internalConnections, Self.minimum), Self.maximumPublic)
    }
}
