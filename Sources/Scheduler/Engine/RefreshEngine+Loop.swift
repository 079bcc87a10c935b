import Base
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
        state.queueDueGrants(under: conditions)
        let wait = await dispatchQueues()
        return state.nextIteration(after: wait, under: conditions)
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
        state.pageArrived(page, of: client, after: cursor, under: conditions)
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
