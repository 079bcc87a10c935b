package import Base

/// The waiting and in-flight requests with their deadlines.
///
/// A value that decides which request starts or expires, and has no effects.
package struct TransferQueue {
    private struct Entry {
        var deadline: BootInstant
        var isInFlight: Bool
    }

    package let maximumInFlight: Int
    private var entries: [UInt64: Entry] = [:]
    /// The waiting ids in the order of submission; it may still contain ids that have since been removed.
    private var queue: [UInt64] = []
    private var queueStart = 0
    package private(set) var inFlight = 0
    /// A lower bound of all deadlines.
    private var earliestDeadline: BootInstant?

    package init(maximumInFlight: Int) {
        self.maximumInFlight = maximumInFlight
    }

    package var waiting: Int { entries.count - inFlight }

    /// `true` if ``startNext()`` would return a request.
    package var canStart: Bool { waiting > 0 && inFlight < maximumInFlight }

    package mutating func submit(_ id: UInt64, deadline: BootInstant) {
        entries[id] = Entry(deadline: deadline, isInFlight: false)
        queue.append(id)
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
    }

    /// Moves the longest-waiting request in flight, if the limit allows it.
    package mutating func startNext() -> UInt64? {
        guard canStart else { return nil }
        while queueStart < queue.count {
            let id = queue[queueStart]
            queueStart += 1
            guard entries[id] != nil else { continue }
            entries[id]?.isInFlight = true
            inFlight += 1
            dropStartedIDs()
            return id
        }
        return nil
    }

    /// Removes a request that has ended, whether it was waiting or in flight.
    package mutating func remove(_ id: UInt64) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        if entry.isInFlight { inFlight -= 1 }
        if entries.isEmpty { earliestDeadline = nil }
    }

    /// `true` if ``expired(at:)`` may return a request.
    package func hasExpired(at now: BootInstant) -> Bool { earliestDeadline.map { $0 <= now } ?? false }

    /// Returns the requests whose deadline has come, the earliest first; they stay in the queue.
    ///
    /// It scans the requests only if one may have expired, so that the cost of a loop round does not grow with the
    /// number of requests.
    package mutating func expired(at now: BootInstant) -> [UInt64] {
        guard let earliestDeadline, earliestDeadline <= now else { return [] }
        let overdue = entries.filter { $0.value.deadline <= now }
        self.earliestDeadline = entries.lazy.map(\.value.deadline).filter { $0 > now }.min()
        return overdue.sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }.map(\.key)
    }

    /// Returns the longest time for which the loop may wait: until a request can start or expires, or the limit.
    package func waitTime(at now: BootInstant, limit: Duration) -> Duration {
        guard !canStart else { return .zero }
        guard let earliestDeadline else { return limit }
        return max(.zero, min(limit, earliestDeadline - now))
    }

    private mutating func dropStartedIDs() {
        guard queueStart >= 256, queueStart * 2 >= queue.count else { return }
        queue.removeFirst(queueStart)
        queueStart = 0
    }
}
