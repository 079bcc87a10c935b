import Base
private import Dispatch
import Storage

/// The loop: each iteration scans the due index if it is time, and claims and sends what can go.
extension RefreshEngine {
    /// Runs the loop until the task is cancelled or the engine is stopped.
    ///
    /// - Parameter onProgress: called after each iteration, and after each call of the store within it, to show that
    ///   the loop is alive.
    package func run(onProgress: @escaping @Sendable () -> Void) async {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        wakeLoop = { wake.yield() }
        reportProgress = onProgress
        let timer = WakeTimer(timeSource: time) { wake.yield() }
        defer { timer.cancel() }
        wake.yield()
        for await _ in wakes {
            if state.isStopping || Task.isCancelled { break }
            let next = await runLoopIteration()
            onProgress()
            timer.arm(for: next)
        }
    }

    /// Does all that is due now, and returns the time of the next iteration.
    func runLoopIteration() async -> Timestamp {
        await checkClock()
        reportProgress()
        if state.isScanDue(at: time.sinceBoot) { await scan() } else { await readOn() }
        state.queueDueGrants(at: conditions)
        let wait = await dispatchQueues()
        return state.nextIteration(after: wait, at: conditions)
    }

    // MARK: Scanning

    private func scan() async {
        state.beginScan(at: time.sinceBoot)
        await reportingFailure {
            try await readHealth()
            let clients = try await store.clientsWithDueTimes()
            state.clientsInUse = Set(clients)
            for client in clients {
                guard state.beginReading(client) else { return }
                try await read(client, after: nil)
                try await readOn(client)
            }
        }
    }

    /// Reads on for clients whose queue runs short while the index has more.
    private func readOn() async {
        for client in state.clientsToReadOn {
            guard await reportingFailure({ try await readOn(client) }) else { return }
        }
    }

    private func readOn(_ client: String) async throws {
        while let cursor = state.cursorToReadOn(client) { try await read(client, after: cursor) }
    }

    private func read(_ client: String, after cursor: DueEntry?) async throws {
        let page = try await store.due(
            ofClient: client,
            by: time.now + configuration.scanAhead,
            after: cursor,
            atMost: RefreshEngineState.pageSize
        )
        reportProgress()
        state.pageArrived(page, of: client, after: cursor, at: conditions)
    }

    /// Runs calls of the store and reports their failure, and returns `false` if one failed.
    @discardableResult
    private func reportingFailure(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            reportStoreFailure(error, waiting: inFlight)
            reportProgress()
            return false
        }
    }
}

/// The health of the clients, as all workers store it.
extension RefreshEngine {
    /// Reads the instant of the clock that all workers share.
    func readSharedClock() async throws {
        let reading = try await store.leaseTime()
        state.updateSharedClock(reading, at: time.sinceBoot)
    }

    /// Reads the stored health of all clients.
    func readHealth() async throws {
        try await readSharedClock()
        state.updateHealth(try await store.clientHealth())
        execute(state.updateReach())
    }
}

/// The scan: pages of the due index come into the window, and due grants go from there into their client's queue.
extension RefreshEngineState {
    /// The number of entries in one page of the due index.
    static let pageSize = 2_000
    /// The largest number of due grants of one client in memory, and of coming grants of all clients.
    ///
    /// The others stay in the store.
    static let maximumQueue = 4_000
    static let maximumWindow = 100_000
    /// The time for which another worker's grant must be overdue before this worker tries to claim it.
    private static let otherShareDelay: Duration = .milliseconds(1_500)

    func isScanDue(at instant: BootInstant) -> Bool { instant >= nextScan }

    mutating func beginScan(at instant: BootInstant) { nextScan = instant + configuration.scanInterval }

    /// Returns `true` if the beginning of a client's part of the index is to be read, or `false` while stopping.
    ///
    /// It is read in each scan, even if a long index is being read on from its last page: grants that another worker
    /// had claimed and left are there.
    mutating func beginReading(_ client: String) -> Bool {
        guard !isStopping else { return false }
        addGate(of: client)
        return true
    }

    /// Returns the entry after which to read on, or `nil` if the index is read to its end, or has filled the queue.
    func cursorToReadOn(_ client: String) -> DueEntry? {
        guard !isStopping, let gate = gates[client], let cursor = gate.cursor,
            gate.queue.count < Self.maximumQueue, window.count < Self.maximumWindow
        else { return nil }
        return cursor
    }

    /// The clients whose queue runs short while the index has more.
    var clientsToReadOn: [String] {
        gates.filter { $1.cursor != nil && $1.queue.count < Self.maximumQueue / 2 }.map(\.key)
    }

    /// Takes the page after `cursor`, or from the beginning, into the window and the queue.
    ///
    /// The cursor moves only past entries that were taken, so that the grants that are due first are refreshed first.
    mutating func pageArrived(
        _ page: [DueEntry],
        of client: String,
        after cursor: DueEntry?,
        at conditions: Conditions
    ) {
        queueDueGrants(at: conditions)
        let taken = take(page, of: client, at: conditions.now)
        queueDueGrants(at: conditions)
        // A page from the beginning must not move the cursor back.
        guard cursor == gates[client]?.cursor else { return }
        let isLast = taken.count == page.count && page.count < Self.pageSize
        gates[client]?.cursor = isLast ? nil : taken.last ?? cursor
    }

    /// Takes a page into the window as far as the queue can take due grants, and returns the entries that were
    /// considered.
    ///
    /// Only a worker that is not behind with its own share takes overdue grants of other workers: otherwise all workers
    /// that are behind would compete for the same grants.
    private mutating func take(_ page: [DueEntry], of client: String, at now: Timestamp) -> ArraySlice<DueEntry> {
        let dueBefore = now + (.zero - Self.otherShareDelay)
        var free = Self.maximumQueue - (gates[client]?.queue.count ?? 0)
        let isBehind =
            free < Self.maximumQueue / 2
            || page.contains { $0.dueAt <= dueBefore && share.owns($0.id) && isOpen($0, of: client) }
        for (index, entry) in page.enumerated() {
            let isTaken = share.owns(entry.id) || !isBehind && entry.dueAt <= dueBefore
            guard isTaken, isOpen(entry, of: client) else { continue }
            if entry.dueAt <= now {
                guard free > 0 else { return page[..<index] }
                free -= 1
            }
            window.set(entry.id, of: client, dueAt: entry.dueAt)
        }
        return page[...]
    }

    /// `true` if a grant is neither queued nor in flight, and no revocation that waits: that has another due time once
    /// the user has connected again.
    private func isOpen(_ entry: DueEntry, of client: String) -> Bool {
        slots[entry.id] == nil && !queued.contains(entry.id)
            && gates[client]?.deferredRevocations.deadline(of: entry.id.rawValue) != entry.dueAt
    }

    /// Moves the grants that are due from the window into the queues.
    mutating func queueDueGrants(at conditions: Conditions) {
        while let (id, client) = window.popDue(at: conditions.now) {
            guard slots[id] == nil else { continue }
            addGate(of: client)
            guard (gates[client]?.queue.count ?? 0) < Self.maximumQueue, queued.insert(id).inserted else { continue }
            gates[client]?.append(id)
        }
    }

    /// Puts a grant's next due time into the window if it is near enough.
    mutating func expect(_ grant: Grant, at now: Timestamp) {
        guard let dueAt = grant.dueAt, dueAt <= now + configuration.scanAhead else { return }
        window.set(grant.id, of: grant.clientID, dueAt: dueAt)
    }

    /// Ends the repair after a step of the clock: the window, which was ordered by the former clock, is read again.
    mutating func clockRepaired(at instant: BootInstant) {
        clock.repaired()
        window.removeAll()
        for client in gates.keys { gates[client]?.cursor = nil }
        nextScan = instant
    }
}

/// The part of the due index that is in memory: a heap of the grants that fall due soon, each with its client.
struct DueWindow: Sendable {
    private var heap = DeadlineHeap()
    private var clients: [GrantID: String] = [:]

    var count: Int { heap.count }
    /// The earliest due time.
    var firstDueAt: Timestamp? { heap.first?.deadline }

    mutating func set(_ id: GrantID, of client: String, dueAt: Timestamp) {
        clients[id] = client
        heap.set(id.rawValue, deadline: dueAt)
    }

    /// The client of the grant that falls due first.
    var firstClient: String? { heap.first.flatMap { clients[GrantID(rawValue: $0.key)] } }

    /// Removes and returns the first grant that is due.
    mutating func popDue(at now: Timestamp) -> (id: GrantID, client: String)? {
        guard let entry = heap.popDue(at: now) else { return nil }
        let id = GrantID(rawValue: entry.key)
        guard let client = clients.removeValue(forKey: id) else {
            preconditionFailure("a grant in the heap without a client")
        }
        return (id, client)
    }

    mutating func removeAll() { self = DueWindow() }
}

/// The single timer for all deadlines: wakes its owner for the earliest of them, and at least once per longest sleep.
///
/// The wait is computed from the wall clock each time the timer is armed, and then counts down on the monotonic clock.
/// A timer that waits *on* the wall clock would stop everything when the clock is set back: libdispatch hands an
/// absolute point of `CLOCK_REALTIME` to `timerfd_settime` without `TFD_TIMER_CANCEL_ON_SET`, so a wake that was 30 s
/// away would be an hour and 30 s away (https://github.com/apple/swift-corelibs-libdispatch, src/event/event_epoll.c).
/// With the countdown a wake is never further away than the longest sleep of running time: the owner then reads the
/// clock again and arms the timer again, so a step of the clock or a suspended machine costs at most one such sleep.
final class WakeTimer: Sendable {
    // Never assigned again, and safe to arm and cancel from any thread: libdispatch swaps new settings in and sets the
    // cancelled flag atomically (https://github.com/apple/swift-corelibs-libdispatch, src/source.c).
    private nonisolated(unsafe) let timer: any DispatchSourceTimer
    private let timeSource: any TimeSource
    private let maximumSleep: Duration

    /// Starts a timer that is not yet armed for a deadline and so wakes after each longest sleep.
    ///
    /// - Parameters:
    ///   - timeSource: the wall clock of the deadlines.
    ///   - maximumSleep: the longest time that the timer sleeps, at least a millisecond.
    ///   - onWake: called on the timer's own serial queue, never twice at once. It can arm the timer. It must not
    ///     block, and it is released when the timer is cancelled.
    init(timeSource: any TimeSource, maximumSleep: Duration = .seconds(30), onWake: @escaping @Sendable () -> Void) {
        precondition(maximumSleep >= .milliseconds(1), "a timer that never sleeps")
        self.timeSource = timeSource
        self.maximumSleep = maximumSleep
        timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "scheduler.wake"))
        timer.setEventHandler(handler: onWake)
        arm(for: nil)
        timer.activate()
    }

    deinit { timer.cancel() }

    /// Arms the timer for a deadline, replacing the one armed before.
    ///
    /// It wakes at once if the deadline is past, and after the longest sleep if it is further away or `nil`. From then
    /// on it wakes after each longest sleep until it is armed again.
    func arm(for deadline: Timestamp?) {
        let sleep = Self.sleep(until: deadline, from: timeSource.now, atMost: maximumSleep)
        timer.schedule(deadline: .now() + sleep.dispatchInterval, repeating: maximumSleep.dispatchInterval)
    }

    /// Stops the timer for good.
    ///
    /// Calling it again, or arming the timer afterwards, does nothing.
    ///
    /// A wake that has already begun on the timer's queue runs to its end.
    func cancel() { timer.cancel() }

    /// Returns the time to sleep for a deadline, if there is one.
    static func sleep(until deadline: Timestamp?, from now: Timestamp, atMost maximum: Duration) -> Duration {
        guard let deadline else { return maximum }
        return deadline <= now ? .zero : min(deadline - now, maximum)
    }
}

extension Duration {
    fileprivate var dispatchInterval: DispatchTimeInterval { .milliseconds(Int(wholeMilliseconds)) }
}
