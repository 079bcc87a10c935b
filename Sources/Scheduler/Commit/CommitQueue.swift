import Base
import Telemetry

/// The refreshes that wait to be stored, and the condition of the store.
///
/// It is a value that ``ResultCommitter`` changes under its lock, from any thread.
struct CommitQueue {
    /// The number of results in one transaction: more than about a hundred rows only hold the writer longer.
    static let batchSize = 100
    /// The size of a batch that is worth a commit.
    private static let worthwhileBatch = 50
    /// The longest time that a smaller batch waits for answers that are still in flight.
    private static let maximumGathering: Duration = .milliseconds(15)

    private(set) var waiting: [Refresh] = []
    /// `true` if a caller waits for one of them.
    private var isAwaited = false
    private var isWriting = false
    /// The number of refreshes in flight, including those that wait here.
    var inFlight = 0
    /// The instant of the first failure since a result was last stored.
    var failingSince: BootInstant?
    var hasGivenUp = false
    /// The times that the store took for a batch.
    var durations = DurationBuckets()

    /// Adds a refresh, and returns `true` if the caller must start the writing.
    mutating func add(_ refresh: Refresh) -> Bool {
        waiting.append(refresh)
        if refresh.isForced { isAwaited = true }
        defer { isWriting = true }
        return !isWriting
    }

    /// Puts refreshes back before the others.
    mutating func putBack(_ refreshes: [Refresh]) { waiting.insert(contentsOf: refreshes, at: 0) }

    /// Returns the next refreshes, or `nil` if there are none, which ends the writing.
    mutating func takeBatch() -> [Refresh]? {
        isAwaited = false
        isWriting = !waiting.isEmpty
        guard isWriting else { return nil }
        let batch = Array(waiting.prefix(Self.batchSize))
        waiting.removeFirst(batch.count)
        return batch
    }

    mutating func takeAll() -> [Refresh] {
        defer { waiting = [] }
        return waiting
    }

    /// The time to wait for more refreshes, or `nil` if those that wait are stored at once.
    var gatheringTime: Duration? {
        if waiting.isEmpty || isAwaited { return nil }
        return Self.gatheringTime(waiting: waiting.count, inFlight: inFlight)
    }

    /// Returns the time that results wait for those in flight, or `nil` if they are stored at once.
    ///
    /// It grows with the number in flight, because the results of one claim come together, and each commit costs as
    /// much as storing several results.
    static func gatheringTime(waiting: Int, inFlight: Int) -> Duration? {
        guard waiting < min(worthwhileBatch, inFlight) else { return nil }
        return min(.milliseconds(5 + inFlight / 20), maximumGathering)
    }
}
