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
        await outageRetries?.value
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

/// The answer of the limits to a pass, or to a caller whose refresh is due now.
enum SendPermission: Equatable {
    /// So many requests can be sent.
    case send(Int)
    /// One grant can be sent if the store grants the client's probe.
    case askForProbe
    /// The question is asked again after this time.
    case wait(Duration)
    /// The question is asked again when a refresh has ended.
    case waitForSlot
    case refuse(VendReason)
}

extension RefreshEngineState {
    /// Decides on up to `count` grants for a pass that ends by `end`.
    mutating func permitPass(
        _ count: Int,
        of client: String,
        until end: BootInstant,
        under conditions: Conditions
    ) -> SendPermission {
        guard conditions.instant < end else { return .refuse(.timeout) }
        guard !isStopping else { return .refuse(.stopping) }
        if let pause = claimPause(under: conditions) { return .wait(pause) }
        // The next report of the workers shows if another worker has the missing key.
        guard conditions.isKeyRingComplete else { return .wait(.milliseconds(50)) }
        let free = min(count, maximumInFlight - slots.count)
        guard free >= min(count, minimumFreeSlots) else { return .waitForSlot }
        return permit(free, of: client, until: end, under: conditions, minimumWait: Self.gatheringTime)
    }

    /// Decides on one refresh for a caller that waits until `end`.
    mutating func permitCaller(
        of client: String,
        until end: BootInstant,
        under conditions: Conditions
    ) -> SendPermission {
        guard !isStopping else { return .refuse(.stopping) }
        // The new token could not be stored either.
        guard !conditions.isCommitFailing else { return .refuse(.storeFailing) }
        return permit(1, of: client, until: end, under: conditions, minimumWait: .milliseconds(1))
    }

    /// Decides by the breaker and the pace of a client.
    private mutating func permit(
        _ count: Int,
        of client: String,
        until end: BootInstant,
        under conditions: Conditions,
        minimumWait: Duration
    ) -> SendPermission {
        addGate(of: client)
        let instant = sharedInstant(at: conditions.instant)
        switch gates[client]?.health.breaker.permits(at: instant) {
        case .wait: return .refuse(.breakerOpen)
        case .probeDue: return .askForProbe
        case .all, nil: break
        }
        let allowed = gates[client]?.pacer.take(upTo: count, at: instant) ?? 0
        guard allowed == 0 else { return .send(allowed) }
        let wait = max(gates[client]?.pacer.nextAvailable(at: instant) ?? .zero, minimumWait)
        return conditions.instant + wait < end ? .wait(wait) : .refuse(.throttled)
    }
}

/// The result of one pass over the due grants.
package struct PassSummary: Sendable, Hashable {
    package var due = 0
    package var refreshed = 0
    package var retrying = 0
    package var held = 0
    package var suspended = 0
    package var reauthRequired = 0
    package var disconnected = 0
    package var skipped = 0

    /// `true` if grants remain due for a later pass.
    package var leavesGrantsDue: Bool { retrying + held > 0 }

    mutating func count(_ completion: RefreshCompletion) {
        due += 1
        switch completion {
        // It is counted when it is sent.
        case .deferred: due -= 1
        case .handledElsewhere: skipped += 1
        case .abandoned, .refused: retrying += 1
        case .committed(_, let stored):
            switch stored.decision.outcome {
            case .refreshed: refreshed += 1
            case .held: held += 1
            case .suspended: suspended += 1
            case .reauthRequired: reauthRequired += 1
            case .disconnected: disconnected += 1
            case .retrying, .unchanged: retrying += 1
            // Another process has changed or claimed the grant since, and handles it.
            case .void, .lostLease: skipped += 1
            }
        }
    }
}
