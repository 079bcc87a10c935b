private import CCommit

/// The version of this build.
package enum Version {
    package static let current = "0.1.0"

    /// The commit that was built, with `-dirty` if files differed from it; `nil` for a build that was not told.
    package static var commit: String? {
        let commit = unsafe String(cString: refresh_worker_commit())
        return commit.isEmpty ? nil : commit
    }

    /// The version, with the commit if it is known.
    package static var withCommit: String { current + (commit.map { " (commit \($0))" } ?? "") }
}
