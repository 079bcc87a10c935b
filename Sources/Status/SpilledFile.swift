package import Base

/// A file of results that the database has not stored.
package struct SpilledFile: Equatable, Sendable {
    package var path: String
    /// `true` if a recovery failed, so that only `results recover` reads the file again.
    package var isSetAside: Bool
    package var writtenAt: Timestamp
    /// The number of results in it, or `nil` if they cannot be counted.
    package var results: Int?

    package init(path: String, isSetAside: Bool, writtenAt: Timestamp, results: Int?) {
        self.path = path
        self.isSetAside = isSetAside
        self.writtenAt = writtenAt
        self.results = results
    }

    /// Describes the file and the command that stores its results.
    package func sentence(at now: Timestamp) -> String {
        let content = results.map { $0.counted("result") } ?? "results that cannot be counted"
        let age = (now - writtenAt).inTwoUnits
        let command = "refresh-worker results recover \(path.shellWord)"
        guard isSetAside else {
            return "\(content) in \(path) wait to be stored since \(age): start the worker, or run: \(command)"
        }
        return """
            \(content) in \(path) could not all be stored, \(age) ago: fix what the log says of the file, then run: \(command)
            """
    }
}
