/// What routes and commands ask for the status.
package protocol StatusSource: Sendable {
    /// Makes a snapshot of what is known now.
    ///
    /// `includesSlowParts` is `false` for a snapshot that is made often: it leaves out the number of tokens for each
    /// key and the number of rows, whose count takes seconds with ten million grants, and the facts of a server, which
    /// need another connection.
    func snapshot(of process: ProcessStatus, includesSlowParts: Bool) async throws -> StatusSnapshot
}

extension StatusSource {
    /// Makes a complete snapshot for a process that is no worker.
    package func snapshot(includesSlowParts: Bool = true) async throws -> StatusSnapshot {
        try await snapshot(of: ProcessStatus(), includesSlowParts: includesSlowParts)
    }
}
