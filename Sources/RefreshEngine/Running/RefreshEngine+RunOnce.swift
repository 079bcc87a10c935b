import Clocks
import Observability
import Scheduler
import Secrets
import Store

/// The result of one pass over the due grants.
package struct RunOnceSummary: Sendable, Hashable {
    package var due = 0
    package var refreshed = 0
    package var retrying = 0
    package var held = 0
    package var suspended = 0
    package var reauthRequired = 0
    package var disconnected = 0
    package var skipped = 0

    /// `true` if grants remain for a later run.
    package var leavesWork: Bool { retrying + held > 0 }

    mutating func add(_ other: RunOnceSummary) {
        due += other.due
        refreshed += other.refreshed
        retrying += other.retrying
        held += other.held
        suspended += other.suspended
        reauthRequired += other.reauthRequired
        disconnected += other.disconnected
        skipped += other.skipped
    }

    mutating func count(_ end: RefreshCompletion) {
        due += 1
        switch end {
        case .elsewhere: skipped += 1
        case .abandoned, .refused: retrying += 1
        case .committed(let result):
            switch result.decision.outcome {
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

/// One pass over all due grants, for cron.
extension RefreshEngine {
    private static let passPage = 100

    /// Tries each due grant once until `deadline`; it waits for the pace, but not for back-off.
    package func runOnce(within deadline: Duration) async throws -> RunOnceSummary {
        let started = time.now
        let end = time.sinceBoot + deadline
        await watchClock()
        try await learnHealth()
        var summary = RunOnceSummary()
        try await withThrowingTaskGroup(of: RunOnceSummary.self) { group in
            for client in try await store.clientsWithDueTimes() {
                group.addTask { try await self.pass(of: client, dueBy: started, until: end) }
            }
            for try await part in group { summary.add(part) }
        }
        await hastening?.value
        return summary
    }

    private func pass(of client: String, dueBy: Timestamp, until end: BootInstant) async throws -> RunOnceSummary {
        var summary = RunOnceSummary()
        var cursor: DueEntry?
        try await withThrowingTaskGroup(of: [RefreshCompletion].self) { group in
            var pages = 0
            while true {
                let page = try await store.due(ofClient: client, by: dueBy, after: cursor, atMost: Self.passPage)
                guard !page.isEmpty else { break }
                cursor = page.last
                // A few pages in flight at once keep requests going while the slowest answer of a page is awaited.
                if pages >= mostPagesInFlight, let ends = try await group.next() {
                    for end in ends { summary.count(end) }
                }
                pages += 1
                group.addTask { await self.pass(page.map(\.id)[...], of: client, dueBy: dueBy, until: end) }
            }
            for try await ends in group { for end in ends { summary.count(end) } }
        }
        return summary
    }

    private var mostPagesInFlight: Int { max(4, 2 * state.mostInFlight / Self.passPage) }

    private func pass(
        _ page: ArraySlice<GrantID>,
        of client: String,
        dueBy: Timestamp,
        until end: BootInstant
    ) async -> [RefreshCompletion] {
        var ends: [RefreshCompletion] = []
        var left = page
        while !left.isEmpty {
            let allowed = await allowance(of: client, wanting: left.count, until: end)
            guard allowed > 0 else { return ends + left.map { _ in .abandoned } }
            let (completions, outcome) = await claimAndSend(Array(left.prefix(allowed)), dueBy: dueBy)
            state.putBack(outcome.lost, of: client, takenAt: time.sinceBoot)
            for completion in completions { ends.append(await completion.end) }
            left = left.dropFirst(allowed)
        }
        return ends
    }

    /// Returns the number of grants of a client that may be sent now.
    ///
    /// It waits for the pace, and returns 0 if the breaker is open, the run is stopping or the time is up.
    private func allowance(of client: String, wanting count: Int, until end: BootInstant) async -> Int {
        while keyRing.standbyReason == nil {
            switch state.permitPass(count, of: client, until: end, under: conditions) {
            case .send(let allowed): return allowed
            case .askForProbe: return await beginProbe(client) ? 1 : 0
            case .wait(let span): guard await hasSlept(span) else { return 0 }
            case .stop: return 0
            }
        }
        return 0
    }

    /// Waits; returns `false` if the task was cancelled.
    private func hasSlept(_ span: Duration) async -> Bool {
        do {
            try await time.sleep(for: span)
            return true
        } catch {
            return false
        }
    }
}
