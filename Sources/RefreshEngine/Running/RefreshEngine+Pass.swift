import Clocks
import Secrets
import Store

/// One pass over all due grants, for `--run-once`.
extension RefreshEngine {
    private static let passPageSize = 100

    /// Tries each due grant once until `deadline`; it waits for the pace, but not for back-off.
    package func runPass(within deadline: Duration) async throws -> PassSummary {
        let started = time.now
        let end = time.sinceBoot + deadline
        await checkClock()
        try await readHealth()
        var summary = PassSummary()
        try await withThrowingTaskGroup(of: PassSummary.self) { group in
            for client in try await store.clientsWithDueTimes() {
                group.addTask { try await self.pass(of: client, dueBy: started, until: end) }
            }
            for try await part in group { summary.add(part) }
        }
        await outageRetries?.value
        return summary
    }

    private func pass(of client: String, dueBy: Timestamp, until end: BootInstant) async throws -> PassSummary {
        var summary = PassSummary()
        var cursor: DueEntry?
        try await withThrowingTaskGroup(of: [RefreshCompletion].self) { group in
            var pages = 0
            while true {
                let page = try await store.due(ofClient: client, by: dueBy, after: cursor, atMost: Self.passPageSize)
                guard !page.isEmpty else { break }
                cursor = page.last
                // A few pages in flight at once keep requests going while the slowest answer of a page is awaited.
                if pages >= mostPagesInFlight, let completions = try await group.next() {
                    for completion in completions { summary.count(completion) }
                }
                pages += 1
                group.addTask { await self.pass(page.map(\.id)[...], of: client, dueBy: dueBy, until: end) }
            }
            for try await completions in group { for completion in completions { summary.count(completion) } }
        }
        return summary
    }

    private var mostPagesInFlight: Int { max(4, 2 * state.maximumInFlight / Self.passPageSize) }

    private func pass(
        _ page: ArraySlice<GrantID>,
        of client: String,
        dueBy: Timestamp,
        until end: BootInstant
    ) async -> [RefreshCompletion] {
        var ended: [RefreshCompletion] = []
        var remaining = page
        while !remaining.isEmpty {
            let allowed = await waitForAllowance(of: client, wanting: remaining.count, until: end)
            guard allowed > 0 else { return ended + remaining.map { _ in .abandoned } }
            let (completions, outcome) = await claimAndSend(Array(remaining.prefix(allowed)), dueBy: dueBy)
            state.refund(outcome.lost, of: client, takenAt: time.sinceBoot)
            for completion in completions { ended.append(await completion.value) }
            remaining = remaining.dropFirst(allowed)
        }
        return ended
    }

    /// Returns the number of grants of a client that may be sent now.
    ///
    /// It waits for the pace, and returns 0 if the breaker is open, the engine is stopping or the time is up.
    private func waitForAllowance(of client: String, wanting count: Int, until end: BootInstant) async -> Int {
        while keyRing.standbyReason == nil {
            switch state.permitPass(count, of: client, until: end, under: conditions) {
            case .send(let allowed): return allowed
            case .askForProbe: return await beginProbe(client) ? 1 : 0
            case .wait(let span): guard await sleepUnlessCancelled(span) else { return 0 }
            case .stop: return 0
            }
        }
        return 0
    }

    /// Waits; returns `false` if the task was cancelled.
    private func sleepUnlessCancelled(_ span: Duration) async -> Bool {
        do {
            try await time.sleep(for: span)
            return true
        } catch {
            return false
        }
    }
}
