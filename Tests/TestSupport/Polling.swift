import Clocks

/// Returns when a condition holds that another thread, another process or the kernel brings about without an event.
///
/// It looks every millisecond, and lets `step` act between two looks. The suite's time limit ends a wait in vain. Code
/// with an event, such as a sleep on ``ManualTime``, is awaited by that event instead.
package func poll(
    until condition: () async throws -> Bool,
    meanwhile step: () -> Void = {}
) async throws {
    while try await !condition() {
        step()
        try await SystemTime().sleep(for: .milliseconds(1))
    }
}
