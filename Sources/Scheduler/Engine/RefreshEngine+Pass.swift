import Base
import Storage
import Telemetry

/// One pass over all due grants, for `--run-once`.
extension RefreshEngine {
    private static let passPageSize = 100

    /// Tries each due grant once until `deadline`.
    ///
    /// It waits for the pace, but not for back-off.
    package func runPass(within deadline: Duration) async throws -> PassSummary {
        let started = time.now
        let end = time.sinceBoot + deadline
        await checkClock()
        try await readHealth()
        passSummary = PassSummary()
        passFailure = nil
        try await withThrowingDiscardingTaskGroup { group in
            for client in try await store.clientsWithDueTimes() {
                group.addTask { try await self.pass(of: client, dueBy: started, until: end) }
            }
        }
        for client in state.gates.keys { await sendDeferred(of: client, until: end) }
        for task in outageRetries.values { await task.value }
        await healthyGrantSearch?.value
        if let passFailure { throw passFailure }
        return passSummary
    }

    /// Claims the due grants of a client as its pace and the in-flight limit allow.
    ///
    /// Each claim ends in a task of its own, so that requests keep going while the slowest answer of a claim is
    /// awaited.
    private func pass(of client: String, dueBy: Timestamp, until end: BootInstant) async throws {
        // The first page of a slow index can start a full look. Wait for it, and read the page again. The rest of the
        // time is for what it has found by then.
        _ = try await page(of: client, dueBy: dueBy, after: nil)
        let longestWait = (end - time.sinceBoot) / 2
        await time.wait(atMost: longestWait) { await self.waitForFullLook(of: client) }
        var cursor: DueEntry?
        var page = try await page(of: client, dueBy: dueBy, after: nil)
        try await withThrowingDiscardingTaskGroup { group in
            while true {
                if page.isEmpty, cursor != nil { page = try await self.page(of: client, dueBy: dueBy, after: cursor) }
                guard let last = page.last else { break }
                cursor = last
                let (count, isProbe) = await waitForAllowance(of: client, wanting: page.count, until: end)
                guard count > 0 else {
                    for _ in page { passSummary.count(.abandoned) }
                    page = []
                    continue
                }
                let (request, completions) = state.reserve(page.prefix(count).map(\.id), dueBy: dueBy)
                page.removeFirst(count)
                if isProbe {
                    // Its answer decides about the others.
                    await send(request, of: client, awaiting: completions)
                } else {
                    group.addTask { await self.send(request, of: client, awaiting: completions) }
                }
            }
        }
    }

    private func waitForFullLook(of client: String) async {
        do {
            try await store.waitForFullLook(ofClient: client)
        } catch {
            // The grants that are found are refreshed all the same.
            passFailure = error
        }
    }

    private func page(of client: String, dueBy: Timestamp, after cursor: DueEntry?) async throws -> ArraySlice<DueEntry>
    {
        try await store.due(ofClient: client, by: dueBy, after: cursor, atMost: Self.passPageSize)[...]
    }

    /// Sends the revocations that were deferred, which have their share of the slots only.
    private func sendDeferred(of client: String, until end: BootInstant) async {
        await withDiscardingTaskGroup { group in
            while let left = state.gates[client]?.deferredRevocations.count, left > 0 {
                guard time.sinceBoot < end, !state.isStopping else {
                    for _ in 0..<left { passSummary.count(.abandoned) }
                    return
                }
                let (ids, wait) = state.takeRevocations(of: client, at: time.sinceBoot)
                if !ids.isEmpty {
                    let (request, completions) = state.reserve(ids, dueBy: time.now)
                    // Not in the task: only claimed ones count as in flight.
                    await claim(request, of: client)
                    group.addTask { await self.count(completions) }
                } else if let wait {
                    guard await sleepUnlessCancelled(max(wait, .milliseconds(1))) else { return }
                } else {
                    await withCheckedContinuation { slotWaiters.append($0) }
                }
            }
        }
    }

    private func send(_ request: ClaimRequest, of client: String, awaiting completions: [CompletionSignal]) async {
        await claim(request, of: client)
        await count(completions)
    }

    private func claim(_ request: ClaimRequest, of client: String) async {
        let unsent = await claim(request).unsent
        state.refund(unsent, of: client, takenAt: time.sinceBoot)
    }

    private func count(_ completions: [CompletionSignal]) async {
        for signal in completions {
            // Most of them end together, and each wait would leave the actor and come back.
            if let completion = signal.completion {
                passSummary.count(completion)
            } else {
                passSummary.count(await signal.value)
            }
        }
    }

    /// Returns the number of grants of a client that can be sent now.
    ///
    /// It waits for the pace, and returns 0 if the breaker is open, the engine is stopping or the time is up.
    private func waitForAllowance(
        of client: String,
        wanting count: Int,
        until end: BootInstant
    ) async -> (count: Int, isProbe: Bool) {
        while !isInStandby {
            switch state.permitPass(count, of: client, until: end, under: conditions) {
            case .send(let allowed): return (allowed, false)
            case .askForProbe: return (await beginProbe(client) ? 1 : 0, true)
            case .wait(let span): guard await sleepUnlessCancelled(span) else { return (0, false) }
            case .waitForSlot: await withCheckedContinuation { slotWaiters.append($0) }
            case .refuse: return (0, false)
            }
        }
        return (0, false)
    }

    /// Waits, and returns `false` if the task was cancelled.
    private func sleepUnlessCancelled(_ span: Duration) async -> Bool {
        do {
            try await time.sleep(for: span)
            return true
        } catch {
            return false
        }
    }
}
