package import Store

/// The functions with which a running worker reports its status: the commands have them, and the listeners use them.
package struct StatusReporter: Sendable {
    /// Returns the output of `refresh-worker status --json`.
    package let json: @Sendable (any AccountStore, ProcessObservations) async throws -> String
    /// Returns the judgement, with grants that are counted already; it reads no whole table.
    package let judge: @Sendable (any AccountStore, ProcessObservations, GrantStatistics) async throws -> Judgement

    package init(
        json: @escaping @Sendable (any AccountStore, ProcessObservations) async throws -> String,
        judge: @escaping @Sendable (any AccountStore, ProcessObservations, GrantStatistics) async throws -> Judgement
    ) {
        self.json = json
        self.judge = judge
    }
}
