package import Clocks
import Scheduler
import Secrets
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
    private static let pauseWhileResultsWait: Duration = .seconds(1)

    /// Turns until the task is cancelled or the engine is stopped.
    ///
    /// - Parameter onProgress: told that the loop is alive, after each turn and after each call of the store that it waited for.
    package func run(onProgress: @escaping @Sendable () -> Void) async {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.wake = { wake.yield() }
        beat = onProgress
        let timer = WakeTimer(timeSource: time) { wake.yield() }
        defer { timer.cancel() }
        wake.yield()
        for await _ in wakes {
            if isStopping || Task.isCancelled { break }
            let next = await turn()
            onProgress()
            timer.arm(for: next)
        }
    }

    /// Does all that is to be done now; answers when to turn again.
    package func turn() async -> Timestamp {
        await watchClock()
        beat()
        if time.sinceBoot >= nextScan { await scan() } else { await readOn() }
        queueWhatIsDue()
        let wait = await dispatch()
        let untilScan = nextScan - time.sinceBoot
        let next = time.now + max(.zero, min(wait ?? untilScan, untilScan))
        guard let first = heap.first?.deadline else { return next }
        return min(next, first)
    }

    // MARK: Scanning

    private func scan() async {
        nextScan = time.sinceBoot + configuration.scanInterval
        await minding {
            try await learnHealth()
            for client in try await store.clientsWithDueTimes() {
                guard !isStopping else { return }
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
            guard await minding({ try await readOn(client) }) else { return }
        }
    }

    private func readOn(_ client: String) async throws {
        while !isStopping, let gate = gates[client], let cursor = gate.cursor,
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
        beat()
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

    /// Returns `false` when the store failed.
    @discardableResult
    private func minding(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            note(error, waiting: flights.count)
            beat()
            return false
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
            // A failed claim ends the turn: the next one would wait as long for the same failure.
            if let pause = claimPause { return pause }
            guard let wait = await dispatch(client) else { continue }
            shortestWait = min(shortestWait ?? wait, wait)
        }
        return shortestWait
    }

    /// How long nothing is to be claimed, because the store has failed; `nil` when it works.
    var claimPause: Duration? {
        // What lands wakes the engine, so this need not be exact.
        if settler.isStoreFailing { return Self.pauseWhileResultsWait }
        let pause = claimsResume - time.sinceBoot
        return claimFailures > 0 && pause > .zero ? pause : nil
    }

    private func dispatch(_ client: String) async -> Duration? {
        while !isStopping, claimPause == nil, keyRing.isComplete, let gate = gates[client], !gate.queue.isEmpty {
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
                let claim = await launch(takeFromQueue(of: client, atMost: allowed), dueBy: time.now).claim
                self.gate(of: client) { $0.pacer.putBack(claim.lost, at: instant) }
            }
        }
        return claimPause
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
        while !isStopping, let id = takeFromQueue(of: client, atMost: 1).first {
            guard await !launch([id], dueBy: time.now).claim.hasFailed else { return }
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
            note(error, waiting: 1)
            beat()
            return false
        }
    }
}
