package import Clocks
import Observability
import Scheduler
import Store

/// The turning of the engine: scan, heap, pace, launch.
extension RefreshEngine {
    /// How many entries one page of the due index has, and how many pages one scan reads at most.
    private static let pageSize = 2_000
    private static let mostPages = 10
    /// How many grants of one client wait in memory; the store keeps the rest.
    private static let longestQueue = 2_000
    /// How many grants one claim takes.
    private static let batchSize = 100
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
        if time.sinceBoot >= nextScan { await scan() }
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
        do {
            let lease = try await store.leaseTime()
            for (client, stored) in try await store.clientHealth() {
                gate(of: client) { $0.learn(ClientHealth(stored: stored, epoch: lease.epoch)) }
            }
            let horizon = time.now + configuration.scanAhead
            for _ in 0..<Self.mostPages {
                let page = try await store.due(by: horizon, after: scanCursor, atMost: Self.pageSize)
                for entry in page { expect(entry) }
                // What this scan does not reach the next one does: a client that cannot be served, with ever so many
                // grants overdue, must not hide those of the others behind it.
                scanCursor = page.count < Self.pageSize ? nil : page.last
                if scanCursor == nil { break }
            }
        } catch {
            log.storeTrouble(error, waiting: flights.count)
        }
    }

    private func expect(_ entry: DueEntry) {
        guard flights[entry.id] == nil, !queued.contains(entry.id) else { return }
        clients[entry.id] = entry.clientID
        heap.set(entry.id.rawValue, deadline: entry.dueAt)
    }

    private func queueWhatIsDue() {
        let now = time.now
        while let entry = heap.popDue(at: now) {
            let id = GrantID(rawValue: entry.key)
            guard let client = clients.removeValue(forKey: id), flights[id] == nil else { continue }
            gate(of: client) { gate in
                guard gate.queue.count < Self.longestQueue, queued.insert(id).inserted else { return }
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
            let instant = time.sinceBoot
            switch gate.health.breaker.permits(at: instant) {
            case .wait(let until):
                return until - instant
            case .probeDue:
                await probe(client)
                return nil
            case .all:
                let room = min(configuration.mostInFlight - flights.count, gate.queue.count, Self.batchSize)
                // A landing flight wakes the engine, so a full sky needs no timer.
                guard room > 0 else { return nil }
                let allowed = gates[client]?.pacer.take(upTo: room, at: instant) ?? 0
                guard allowed > 0 else { return gates[client]?.pacer.nextAvailable(at: instant) }
                await launch(takeFromQueue(of: client, atMost: allowed), dueBy: time.now)
            }
        }
        return nil
    }

    private func takeFromQueue(of client: String, atMost count: Int) -> [GrantID] {
        guard let gate = gates[client] else { return [] }
        let taken = Array(gate.queue.prefix(count))
        gates[client]?.queue.removeFirst(taken.count)
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
        for slot in flights.values { slot.task?.cancel() }
    }
}
