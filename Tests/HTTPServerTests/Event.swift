import TestSupport

/// An event that tests and handlers wait for.
///
/// It may happen several times.
final class Event: Sendable {
    private let count = AwaitedState(0)

    /// Records that it happened once more.
    func happen() { count.change { $0 += 1 } }

    /// Returns when it has happened that many times.
    func wait(times: Int = 1) async { await count.wait { $0 >= times } }
}

/// Waits until the task ends.
func untilCancelled() async {
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    for await _ in stream {}
    continuation.finish()
}
