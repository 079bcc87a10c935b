import CCommit

enum Version {
    static let current = "0.1.0"

    /// The commit that was built, with `-dirty` if files differed from it, or `nil` for a build that was not told.
    static var commit: String? {
        let commit = unsafe String(cString: refresh_worker_commit())
        return commit.isEmpty ? nil : commit
    }

    /// The version, with the commit if it is known.
    static var withCommit: String { current + (commit.map { " (commit \($0))" } ?? "") }
}
