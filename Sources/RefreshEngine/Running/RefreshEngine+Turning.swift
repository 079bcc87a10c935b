package import Clocks
import Scheduler
import Secrets
import Store

/// One turn of the engine: scan, heap, pace, launch.
extension RefreshEngine {
    /// The number of entries in one page of the due index.
    private static let pageSize = 2_000
    /// The largest number of due grants of one client in memory, and of coming grants of all clients; the others stay
    /// in the store.
    private static let longestQueue = 4_000
    private static let widestWindow = 100_000
    /// The number of grants in one claim.
    private static let batchSize = 100
    /// The time that a short queue waits for more grants while others are in flight: a claim of one costs as much as a
    /// claim of many.
    private static let gatheringTime: Duration = .milliseconds(20)
    /// The time for which another worker's grant must be overdue before this worker tries to claim it.
    private static let courtesy: Duration = .milliseconds(1_500)
    private static let pauseWhileResultsWait: Duration = .seconds(1)

    /// Turns until the task is cancelled or the engine is stopped.
    ///
    /// - Parameter onProgress: called after each turn, and after each call of the store within it, to show that the
    ///   loop is alive.
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

    /// Does all that is due now; returns the time of the next turn.
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
                // The beginning of the index is read each time, even if a long index is being read on from its last
                // page: grants that another worker had claimed and left are there.
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

    /// Reads on for clients whose queue runs short while the index has more.
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
    /// The cursor moves only past entries that found room, so that the grants that are due first are refreshed first.
    private func readPage(of client: String, after cursor: DueEntry?) async throws {
        let horizon = time.now + configuration.scanAhead
        let page = try await store.due(ofClient: client, by: horizon, after: cursor, atMost: Self.pageSize)
        beat()
        queueWhatIsDue()
        let taken = take(page, of: client)
        queueWhatIsDue()
        gate(of: client) { gate in
            // A page from the beginning must not move the cursor back.
            guard cursor == gate.cursor else { return }
            let isLast = taken.count == page.count && page.count < Self.pageSize
            gate.cursor = isLast ? nil : taken.last ?? cursor
        }
    }

    /// Takes a page into the window as far as the queue has room for due grants; returns the entries that were
    /// considered.
    ///
    /// Only a worker that is not behind with its own share takes overdue grants of other workers: otherwise all workers
    /// that are behind would compete for the same grants.
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

    /// `true` if a grant is neither queued nor in flight.
    private func isOpen(_ id: GrantID) -> Bool { flights[id] == nil && !queued.contains(id) }

    /// Runs a call of the store and reports its failure; returns `false` if it failed.
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

    /// Launches the grants that the clients' breakers and paces allow; returns the wait until more may go.
    private func dispatch() async -> Duration? {
        var shortestWait: Duration?
        let names = gates.keys.sorted()
        guard !names.isEmpty else { return nil }
        // Another client goes first each time, so that one with a long queue does not take every place that becomes
        // free.
        turns &+= 1
        let first = Int(turns % UInt64(names.count))
        for client in names[first...] + names[..<first] {
            // A failed claim ends the turn: the next claim would wait as long for the same failure.
            if let pause = claimPause { return pause }
            guard let wait = await dispatch(client) else { continue }
            shortestWait = min(shortestWait ?? wait, wait)
        }
        return shortestWait
    }

    /// The time for which claims are paused because the store has failed; `nil` while it works.
    var claimPause: Duration? {
        // A completed flight wakes the engine, so this does not have to be exact.
        if committer.isStoreFailing { return Self.pauseWhileResultsWait }
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
                // At the in-flight limit no timer is needed: a completed flight wakes the engine.
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

    /// The number of places that must be free before more grants are claimed: a claim of few costs as much as a claim
    /// of many.
    var leastRoom: Int { min(max(mostInFlight / 4, 1), Self.batchSize / 2) }

    /// The time for which a short queue still waits for more grants; `nil` if it may go.
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

    /// Sends one grant through an open breaker, unless another worker is doing so.
    private func probe(_ client: String) async {
        guard gates[client]?.isAskingForProbe == false else { return }
        gate(of: client) { $0.isAskingForProbe = true }
        defer { gate(of: client) { $0.isAskingForProbe = false } }
        guard await beginProbe(client) else { return }
        // A grant that another worker has, or that needs no request to the token endpoint, proves nothing: the next one
        // is the probe.
        while !isStopping, let id = takeFromQueue(of: client, atMost: 1).first {
            guard await !launch([id], dueBy: time.now).claim.hasFailed else { return }
            guard let flight = flights[id]?.flight, flight.asksForToken else { continue }
            log.breakerProbe(client: client)
            return
        }
    }

    /// Asks the store, which all workers share, if this worker may probe.
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
