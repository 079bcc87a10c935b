private import Synchronization

/// Clocks that move only when a test moves them.
package final class ManualTime: TimeSource {
    private struct Hands {
        var now: Timestamp
        var sinceBoot: BootInstant
    }

    private let hands: Mutex<Hands>

    package init(
        now: Timestamp = Timestamp(secondsSince1970: 1_800_000_000),
        sinceBoot: BootInstant = .init(milliseconds: 1_000_000)
    ) {
        hands = Mutex(Hands(now: now, sinceBoot: sinceBoot))
    }

    package var now: Timestamp { hands.withLock { $0.now } }

    package var sinceBoot: BootInstant { hands.withLock { $0.sinceBoot } }

    /// Advances both clocks.
    package func advance(by span: Duration) {
        hands.withLock {
            $0.now = $0.now + span
            $0.sinceBoot = $0.sinceBoot + span
        }
    }

    /// Steps the wall clock alone, as an administrator or NTP does.
    package func stepWallClock(by span: Duration) {
        hands.withLock { $0.now = $0.now + span }
    }
}
