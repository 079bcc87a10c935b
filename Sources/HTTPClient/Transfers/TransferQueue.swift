internal import Base

/// The waiting and in-flight requests with their deadlines.
///
/// It decides which request starts or expires, and has no other effects than on their stages.
struct TransferQueue {
    let maximumInFlight: Int
    private var transfers: [UInt64: HTTPTransfer] = [:]
    /// The numbers of the waiting requests in the order of submission, and of some that have since started or ended.
    private var queue: [UInt64] = []
    private var queueStart = 0
    private(set) var inFlight = 0
    private var lastNumber: UInt64 = 0
    private var earliestDeadline: BootInstant?

    init(maximumInFlight: Int) {
        self.maximumInFlight = maximumInFlight
    }

    var waiting: Int { transfers.count - inFlight }

    /// The requests that have not ended, in the order of submission.
    var all: [HTTPTransfer] { transfers.values.sorted { $0.number < $1.number } }

    /// `true` if ``startNext()`` would return a request.
    var canStart: Bool { waiting > 0 && inFlight < maximumInFlight }

    mutating func submit(_ transfer: HTTPTransfer) {
        lastNumber += 1
        transfer.number = lastNumber
        transfer.stage = .waiting
        transfers[lastNumber] = transfer
        queue.append(lastNumber)
        earliestDeadline = min(earliestDeadline ?? transfer.deadline, transfer.deadline)
    }

    /// Moves the longest-waiting request in flight, if the limit allows it.
    mutating func startNext() -> HTTPTransfer? {
        guard canStart else { return nil }
        while queueStart < queue.count {
            let transfer = transfers[queue[queueStart]]
            queueStart += 1
            guard let transfer, transfer.stage == .waiting else { continue }
            transfer.stage = .inFlight
            inFlight += 1
            dropStarted()
            return transfer
        }
        return nil
    }

    /// Removes a request that has ended, whether it was waiting or in flight.
    mutating func remove(_ transfer: HTTPTransfer) {
        guard transfers.removeValue(forKey: transfer.number) != nil else { return }
        if transfer.stage == .inFlight { inFlight -= 1 }
        transfer.stage = .ended
        if transfers.isEmpty { earliestDeadline = nil }
    }

    /// `true` if ``expired(at:)`` might return a request.
    func hasExpired(at now: BootInstant) -> Bool {
        guard let earliestDeadline else { return false }
        return earliestDeadline <= now
    }

    /// Returns the requests whose deadline has come, the earliest first.
    ///
    /// They stay in the queue.
    ///
    /// It scans the requests only if one might have expired, so that the cost of a loop round does not grow with the
    /// number of requests.
    mutating func expired(at now: BootInstant) -> [HTTPTransfer] {
        guard hasExpired(at: now) else { return [] }
        earliestDeadline = transfers.values.lazy.map(\.deadline).filter { $0 > now }.min()
        return transfers.values.filter { $0.deadline <= now }
            .sorted { ($0.deadline, $0.number) < ($1.deadline, $1.number) }
    }

    /// Returns the longest time for which the loop can wait: until a request can start or expires, or the limit.
    func waitTime(at now: BootInstant, limit: Duration) -> Duration {
        guard !canStart else { return .zero }
        guard let earliestDeadline else { return limit }
        return max(.zero, min(limit, earliestDeadline - now))
    }

    private mutating func dropStarted() {
        guard queueStart == queue.count || queueStart >= 256 && queueStart * 2 >= queue.count else { return }
        queue.removeFirst(queueStart)
        queueStart = 0
    }
}
