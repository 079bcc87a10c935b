package import Storage

/// The functions with which a running worker reports its status: the commands have them, and the listeners use them.
package struct StatusReporter: Sendable {
    /// Returns the output of `refresh-worker status --json`.
    package let json: @Sendable (any AccountStore, ProcessObservations) async throws -> String
    /// Returns what the database says for the judgement.
    ///
    /// It reads no whole table.
    package let observe: @Sendable (any AccountStore) async throws -> Observations

    package init(
        json: @escaping @Sendable (any AccountStore, ProcessObservations) async throws -> String,
        observe: @escaping @Sendable (any AccountStore) async throws -> Observations
    ) {
        self.json = json
        self.observe = observe
    }
}
