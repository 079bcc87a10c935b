/// How many connections each listener may hold, so that strangers leave files for the database, the logs and Google.
struct ConnectionRoom: Equatable, Sendable {
    /// What the worker itself has open at most: the database, logs, the threads' own, and 64 connections to Google.
    private static let filesOfOurOwn = 128
    /// Ten thousand idle strangers must not keep others out.
    private static let mostStrangers = 20_000
    private static let mostServices = 4096
    private static let fewest = 16

    let ofStrangers: Int
    let ofServices: Int

    /// - Parameter openFiles: how many files the process may have open.
    init(openFiles: Int) {
        let spare = openFiles - Self.filesOfOurOwn
        ofServices = min(max(spare / 4, Self.fewest), Self.mostServices)
        ofStrangers = min(max(spare - ofServices, Self.fewest), Self.mostStrangers)
    }
}
