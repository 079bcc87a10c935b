import Base

/// Returns when a condition holds that another thread, another process or the kernel causes without an event.
///
/// It checks every millisecond, and calls `step` between two checks. The suite's time limit ends a wait for a condition
/// that never holds. If there is an event, such as a sleep on ``ManualTime``, wait for it instead.
package func poll(
    until condition: () async throws -> Bool,
    step: () -> Void = {}
) async throws {
    while try await !condition() {
        step()
        try await SystemTime().sleep(for: .milliseconds(1))
    }
}
