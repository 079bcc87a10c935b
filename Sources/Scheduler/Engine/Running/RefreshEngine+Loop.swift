package import Base
import Storage

/// The loop: each iteration scans the due index if it is time, and claims and sends what may go.
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

    /// Does all that is due now; returns the time of the next iteration.
    package func runLoopIteration() async -> Timestamp {
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
                guard let first = state.firstPage(of: client, at: time.now) else { return }
                try await read(first)
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
        while let next = state.nextPage(of: client, at: time.now) { try await read(next) }
    }

    private func read(_ request: RefreshEngineState.PageRequest) async throws {
        let page = try await store.due(
            ofClient: request.client,
            by: request.horizon,
            after: request.cursor,
            atMost: RefreshEngineState.pageSize
        )
        reportProgress()
        state.pageArrived(page, for: request, at: conditions)
    }

    /// Runs calls of the store and reports their failure; returns `false` if one failed.
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

    // MARK: Dispatch

    /// Claims and sends the grants that may go now; returns the wait until more may go.
    private func dispatchQueues() async -> Duration? {
        var round = state.beginRound()
        while true {
            switch state.nextStep(of: &round, under: conditions) {
            case .claim(let ids, let client, let takenAt):
                let outcome = await claimAndSend(ids, dueBy: time.now).outcome
                state.refund(outcome.lost, of: client, takenAt: takenAt)
            case .askForProbe(let client):
                await probe(client)
            case .end(let wait):
                return wait
            }
        }
    }

    /// Sends one grant through an open breaker, unless another worker is doing so.
    private func probe(_ client: String) async {
        guard await beginProbe(client) else { return }
        while let id = state.nextToProbe(of: client, at: time.sinceBoot) {
            guard await !claimAndSend([id], dueBy: time.now).outcome.hasFailed else { return }
            guard state.isProbe(id) else { continue }
            log.breakerProbe(client: client)
            return
        }
    }
}
