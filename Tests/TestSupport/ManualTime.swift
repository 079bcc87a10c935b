package import Base
private import Synchronization

/// Clocks that move only when a test moves them.
///
/// A sleep ends when the boot clock reaches its end. A test waits with ``sleepers(atLeast:for:)`` until the code under
/// test sleeps, and then advances the clocks.
package final class ManualTime: TimeSource {
    private struct Sleeper {
        let span: Duration
        let end: BootInstant
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var now: Timestamp
        var sinceBoot: BootInstant
        var sleepers: [Int: Sleeper] = [:]
        var observers: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastID = 0

        mutating func nextID() -> Int {
            lastID += 1
            return lastID
        }
    }

    private let state: Mutex<State>
    private let maximumImmediate: Duration

    /// Creates clocks that show these times.
    ///
    /// Sleeps of at most `immediateUpTo` end at once, and the clocks do not move. It is for code that gathers work for
    /// a few milliseconds.
    package init(
        now: Timestamp = Timestamp(secondsSince1970: 1_800_000_000),
        sinceBoot: BootInstant = .init(milliseconds: 1_000_000),
        immediateUpTo maximumImmediate: Duration = .zero
    ) {
        state = Mutex(State(now: now, sinceBoot: sinceBoot))
        self.maximumImmediate = maximumImmediate
    }

    package var now: Timestamp { state.withLock { $0.now } }

    package var sinceBoot: BootInstant { state.withLock { $0.sinceBoot } }

    /// Advances both clocks, and ends the sleeps that are over.
    package func advance(by span: Duration) {
        let ended = state.withLock { state -> [Sleeper] in
            state.now = state.now + span
            state.sinceBoot = state.sinceBoot + span
            let over = state.sleepers.filter { $0.value.end <= state.sinceBoot }
            for id in over.keys { state.sleepers[id] = nil }
            return over.values.sorted { $0.end < $1.end }
        }
        for sleeper in ended { sleeper.continuation.resume(returning: true) }
    }

    /// Steps the wall clock alone, as an administrator or NTP does.
    package func stepWallClock(by span: Duration) {
        state.withLock { $0.now = $0.now + span }
    }

    package func sleep(for span: Duration) async throws(CancellationError) {
        guard span > maximumImmediate else {
            await Task.yield()
            if Task.isCancelled { throw CancellationError() }
            return
        }
        let id = state.withLock { $0.nextID() }
        let isOver = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let observers = state.withLock { state -> [AsyncStream<Void>.Continuation]? in
                    // A cancellation sets the flag before it calls the handler, which finds the sleeper after this.
                    guard !Task.isCancelled else { return nil }
                    state.sleepers[id] = Sleeper(
                        span: span,
                        end: state.sinceBoot + span,
                        continuation: continuation
                    )
                    return Array(state.observers.values)
                }
                guard let observers else { return continuation.resume(returning: false) }
                for observer in observers { observer.yield() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(returning: false)
        }
        guard isOver else { throw CancellationError() }
    }

    /// Returns when at least this many tasks sleep, or when the caller is cancelled.
    ///
    /// With a span, it counts only sleeps of exactly this length.
    package func sleepers(atLeast count: Int, for span: Duration? = nil) async {
        let (changes, observer) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let id = state.withLock { state in
            let id = state.nextID()
            state.observers[id] = observer
            return id
        }
        defer { state.withLock { $0.observers[id] = nil } }
        observer.yield()
        for await _ in changes {
            let found = state.withLock { state in
                state.sleepers.values.count { sleeper in span.map { sleeper.span == $0 } ?? true }
            }
            if found >= count { return }
        }
    }
}
