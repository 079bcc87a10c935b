import Status

/// A status that a test makes.
struct ObservedStatus: StatusSource {
    let make: @Sendable (ProcessStatus) async throws -> StatusSnapshot

    func snapshot(of process: ProcessStatus, includesSlowParts: Bool) async throws -> StatusSnapshot {
        try await make(process)
    }
}
