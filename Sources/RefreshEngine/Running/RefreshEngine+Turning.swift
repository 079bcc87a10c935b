package import Clocks
import Observability
import Scheduler
import Store

/// The turning of the engine: scan, heap, pace, launch.
extension RefreshEngine {
    /// How many entries one page of the due index has.
    private static let pageSize = 2_000
    /// How many grants of one client that are due wait in memory, and how many of all that will be soon; the store keeps the
    /// rest.
    private static let longestQueue = 4_000
    private static let widestWindow = 100_000
    /// How many grants one claim takes.
    private static let batchSize = 100
    /// How long a few grants wait for more to be claimed with, while others are on their way: a claim of one costs as much as
    /// one of many.
    private static let gatheringTime: Duration = .milliseconds(20)
    /// How long a grant that is another worker's to refresh lies due before this one tries to take it.
    private static let courtesy: Duration = .milliseconds(1_500)
    private static let timeToStoreWhatWasCancelled: Duration = .seconds(2)

    /// Turns until the task is cancelled or the engine is stopped.
    ///
    /// - Parameter onTurn: told after each turn that the loop is alive.
    package func run(onTurn: @escaping @Sendable () -> Void) async {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.wake = { wake.yield() }
        let timer = WakeTimer(timeSource: time) { wake.yield() }
        defer { timer.cancel() }
        wake.yield()
        for await _ in wakes {
            if isStopping || Task.isCancelled { break }
            let next = await turn()
            onTurn()
            timer.arm(for: next)
        }
    }

    /// Does all that is to be done now; answers when to turn again.
    package func turn() async -> Timestamp {
        await watchClock()
        if time.sinceBoot >= nextScan { await scan() } else { await readOn() }
        queueWhatIsDue()
        let wait = await dispatch()
        let untilScan = nextScan - time.sinceBoot
        let next = time.now + max(.zero, min(wait ?? untilScan, untilScan))
        guard let first = heap.first?.deadline else { return next }
        return min(next, first)
    }

    /// Stops taking work, lets what is in flight finish until the deadline, and gives back the rest.
    ///
    /// Answers how many results could not be stored.
    package func stop(within deadline: Duration) async -> Int {
        isStopping = true
        wake()
        let patience = Task {
            do {
                try await Task.sleep(for: deadline)
                cancelFlights()
                try await Task.sleep(for: Self.timeToStoreWhatWasCancelled)
                await settler.giveUp()
            } catch is CancellationError {
                // All flights landed in time.
            }
        }
        await drain()
        patience.cancel()
        return abandoned
    }

    // MARK: Scanning

    private func scan() async {
        nextScan = time.sinceBoot + configuration.scanInterval
        await minding {
            try await learnHealth()
            for client in try await store.clientsWithDueTimes() {
                gate(of: client) { _ in }
                // The beginning of the index is read each time, though the rest of a long one be read on from where the last
                // page ended: what another worker had taken, and has left, lies there.
                try await readPage(of: client, after: nil)
                try await readOn(client)
            }
        }
    }

    func learnHealth() async throws {
        try await readSharedClock()
        for (client, stored) in try await store.clientHealth() {
            gate(of: client) { $0.learn(ClientHealth(stored: stored, epoch: sharedClock.epoch)) }
        }
    }

    /// Reads on where a queue runs short and the index has more.
    private func readOn() async {
        for (client, gate) in gates where gate.cursor != nil && gate.queue.count < Self.longestQueue / 2 {
            await minding { try await readOn(client) }
        }
    }

    private func readOn(_ client: String) async throws {
        while let gate = gates[client], let cursor = gate.cursor,
            gate.queue.count < Self.longestQueue, heap.count < Self.widestWindow
        {
            try await readPage(of: client, after: cursor)
        }
    }

    /// Reads one page of a client's part of the due index into the window.
    ///
    /// The cursor moves only to what there was room for: the grants that are due first are refreshed first.
    private func readPage(of client: String, after cursor: DueEntry?) async throws {
        let horizon = time.now + configuration.scanAhead
        let page = try await store.due(ofClient: client, by: horizon, after: cursor, atMost: Self.pageSize)
        queueWhatIsDue()
        let taken = take(page, of: client)
        queueWhatIsDue()
        gate(of: client) { gate in
            // A page of the beginning does not take back what was read beyond it.
            guard cursor == gate.cursor else { return }
            let isLast = taken.count == page.count && page.count < Self.pageSize
            gate.cursor = isLast ? nil : taken.last ?? cursor
        }
    }

    /// Takes a page into the window, as far as the queue has room for what is due; answers what was looked at.
    ///
    /// What another worker leaves lying is taken only by one that is not behind with its own: workers that are all behind
    /// would queue up for the same grants otherwise.
    private func take(_ page: [DueEntry], of client: String) -> ArraySlice<DueEntry> {
        let now = time.now
        let leftLying = now + (.zero - Self.courtesy)
        var room = Self.longestQueue - (gates[client]?.queue.count ?? 0)
        let isBehind =
            room < Self.longestQueue / 2
            || page.contains { $0.dueAt <= leftLying && share.owns($0.id) && isOpen($0.id) }
        for (place, entry) in page.enumerated() {
            let isOurs = share.owns(entry.id) || !isBehind && entry.dueAt <= leftLying
            guard isOurs, isOpen(entry.id) else { continue }
            if entry.dueAt <= now {
                guard room > 0 else { return page[..<place] }
                room -= 1
            }
            clients[entry.id] = client
            heap.set(entry.id.rawValue, deadline: entry.dueAt)
        }
        return page[...]
    }

    /// Whether a grant neither waits in the queue nor is on its way.
    private func isOpen(_ id: GrantID) -> Bool { flights[id] == nil && !queued.contains(id) }

    private func minding(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            log.storeTrouble(error, waiting: flights.count)
        }
    }

    private func queueWhatIsDue() {
        let now = time.now
        while let entry = heap.popDue(at: now) {
            let id = GrantID(rawValue: entry.key)
            guard let client = clients.removeValue(forKey: id), flights[id] == nil else { continue }
            gate(of: client) { gate in
                guard gate.queue.count < Self.longestQueue, queued.insert(id).inserted else { return }
                if gate.queue.isEmpty { gate.waitingSince = time.sinceBoot }
                gate.queue.append(id)
            }
        }
    }

    // MARK: Sending

    /// Launches what the clients' breakers and paces let through; answers how long until more may go.
    private func dispatch() async -> Duration? {
        var shortestWait: Duration?
        let names = gates.keys.sorted()
        guard !names.isEmpty else { return nil }
        // Another client goes first each time, or one with a long queue would take every place that becomes free.
        turns &+= 1
        let first = Int(turns % UInt64(names.count))
        for client in names[first...] + names[..<first] {
            guard let wait = await dispatch(client) else { continue }
            shortestWait = min(shortestWait ?? wait, wait)
        }
        return shortestWait
    }

    private func dispatch(_ client: String) async -> Duration? {
        while !isStopping, let gate = gates[client], !gate.queue.isEmpty {
            let instant = sharedNow
            switch gate.health.breaker.permits(at: instant) {
            case .wait(let until):
                return until - instant
            case .probeDue:
                await probe(client)
                return nil
            case .all:
                let wanted = min(gate.queue.count, Self.batchSize)
                let room = min(mostInFlight - flights.count, wanted)
                // A landing flight wakes the engine, so a full sky needs no timer.
                guard room >= min(wanted, leastRoom) else { return nil }
                if let wait = gatheringWait(of: gate) { return wait }
                let allowed = gates[client]?.pacer.take(upTo: room, at: instant) ?? 0
                guard allowed > 0 else { return gates[client]?.pacer.nextAvailable(at: instant) }
                let lost = await launch(takeFromQueue(of: client, atMost: allowed), dueBy: time.now).lost
                self.gate(of: client) { $0.pacer.putBack(lost, at: instant) }
            }
        }
        return nil
    }

    /// How many places must be free before more grants are claimed than there are places for: claims of few cost as much as
    /// claims of many.
    var leastRoom: Int { min(max(mostInFlight / 4, 1), Self.batchSize / 2) }

    /// How long a short queue is still to be left alone; `nil` when it may go.
    private func gatheringWait(of gate: ClientGate) -> Duration? {
        guard let since = gate.waitingSince, gate.queue.count < leastRoom, flights.count >= leastRoom else {
            return nil
        }
        let wait = since + Self.gatheringTime - time.sinceBoot
        return wait > .zero ? wait : nil
    }

    private func takeFromQueue(of client: String, atMost count: Int) -> [GrantID] {
        guard let gate = gates[client] else { return [] }
        let taken = Array(gate.queue.prefix(count))
        gates[client]?.queue.removeFirst(taken.count)
        gates[client]?.waitingSince = gate.queue.count > taken.count ? time.sinceBoot : nil
        queued.subtract(taken)
        return taken
    }

    /// Sends one grant through an open breaker, if no other worker is doing so.
    private func probe(_ client: String) async {
        guard gates[client]?.isAskingForProbe == false else { return }
        gate(of: client) { $0.isAskingForProbe = true }
        defer { gate(of: client) { $0.isAskingForProbe = false } }
        guard await beginProbe(client) else { return }
        // Grants that another worker has, or that ask nothing of Google, prove nothing: the next one is the probe.
        while let id = takeFromQueue(of: client, atMost: 1).first {
            await launch([id], dueBy: time.now)
            guard let flight = flights[id]?.flight, flight.asksForToken else { continue }
            log.breakerProbe(client: client)
            return
        }
    }

    /// Asks the store, where all workers ask, whether this one may probe.
    func beginProbe(_ client: String) async -> Bool {
        let deadline = configuration.leaseNeededToSend
        do {
            let (mayProbe, health) = try await store.transact { transaction in
                let stored = try transaction.clientHealth(client)
                var health = ClientHealth(stored: stored, epoch: transaction.leaseTime.epoch)
                let mayProbe = health.breaker.beginProbe(at: transaction.leaseTime.instant, deadline: deadline)
                if mayProbe { try transaction.setClientHealth(health.stored, of: client) }
                return (mayProbe, health)
            }
            gate(of: client) { $0.learn(health) }
            return mayProbe
        } catch {
            log.storeTrouble(error, waiting: 1)
            return false
        }
    }

    // MARK: Stopping

    private func drain() async {
        guard !flights.isEmpty else { return }
        await withCheckedContinuation { drained.append($0) }
    }

    private func cancelFlights() {
        for slot in flights.values { slot.cancel?() }
    }
}
