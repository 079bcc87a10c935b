import Telemetry

extension DiagnosticLog {
    /// Runs `body`, and only logs its failure: a later run tries again.
    func attempt(_ name: StaticString, _ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            debug(name, ["error": "\(error)"])
        }
    }
}
