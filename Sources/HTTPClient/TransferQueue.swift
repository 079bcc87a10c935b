package import Clocks

/// Which requests wait, which are in flight and when each must have ended: the client's decisions, without its effects.
package struct TransferQueue {
    private struct Entry {
        var deadline: BootInstant
        var isInFlight: Bool
    }

    package let maximumInFlight: Int
    private var entries: [UInt64: Entry] = [:]
    /// The waiting ids in the order of their coming, among ids that have left since.
    private var line: [UInt64] = []
    private var lineStart = 0
    package private(set) var inFlight = 0
    /// No entry's deadline is earlier.
    private var earliestDeadline: BootInstant?

    package init(maximumInFlight: Int) {
        self.maximumInFlight = maximumInFlight
    }

    package var waiting: Int { entries.count - inFlight }

    /// Whether ``startNext()`` would name a request.
    package var canStart: Bool { waiting > 0 && inFlight < maximumInFlight }

    package mutating func submit(_ id: UInt64, deadline: BootInstant) {
        entries[id] = Entry(deadline: deadline, isInFlight: false)
        line.append(id)
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
    }

    /// Puts the longest-waiting request in flight where there is a place for it.
    package mutating func startNext() -> UInt64? {
        guard canStart else { return nil }
        while lineStart < line.count {
            let id = line[lineStart]
            lineStart += 1
            guard entries[id] != nil else { continue }
            entries[id]?.isInFlight = true
            inFlight += 1
            dropPassedPartOfLine()
            return id
        }
        return nil
    }

    /// Takes a request out that has ended, wherever it was.
    package mutating func remove(_ id: UInt64) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        if entry.isInFlight { inFlight -= 1 }
        if entries.isEmpty { earliestDeadline = nil }
    }

    /// The requests whose deadline has come, the earliest first; they stay until removed.
    ///
    /// Looks at each request only when one may have expired, so that a round of the loop does not cost more with more
    /// requests.
    package mutating func expired(at now: BootInstant) -> [UInt64] {
        guard let earliestDeadline, earliestDeadline <= now else { return [] }
        let overdue = entries.filter { $0.value.deadline <= now }
        self.earliestDeadline = entries.lazy.map(\.value.deadline).filter { $0 > now }.min()
        return overdue.sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }.map(\.key)
    }

    /// How long the loop may wait before a request can start or expires, and never longer than the limit.
    package func pause(at now: BootInstant, limit: Duration) -> Duration {
        guard !canStart else { return .zero }
        guard let earliestDeadline else { return limit }
        return max(.zero, min(limit, earliestDeadline - now))
    }

    private mutating func dropPassedPartOfLine() {
        guard lineStart >= 256, lineStart * 2 >= line.count else { return }
        line.removeFirst(lineStart)
        lineStart = 0
    }
}
