import Clocks
import Observability
import Scheduler
import Store

/// What one pass over the due grants came to.
package struct PassSummary: Sendable, Hashable {
    package var due = 0
    package var refreshed = 0
    package var retrying = 0
    package var held = 0
    package var suspended = 0
    package var reauthRequired = 0
    package var disconnected = 0
    package var skipped = 0

    /// Whether something is left for a later run.
    package var leavesWork: Bool { retrying + held > 0 }

    mutating func count(_ end: FlightEnd) {
        due += 1
        switch end {
        case .elsewhere: skipped += 1
        case .abandoned, .objected: retrying += 1
        case .settled(let settled):
            switch settled.ruling.outcome {
            case .refreshed: refreshed += 1
            case .held: held += 1
            case .suspended: suspended += 1
            case .reauthRequired: reauthRequired += 1
            case .disconnected: disconnected += 1
            case .retrying, .unchanged: retrying += 1
            // Somebody else changed or took the grant while it was on its way: it is theirs.
            case .void, .lostLease: skipped += 1
            }
        }
    }
}

/// One pass over all due grants, as cron wants it.
extension RefreshEngine {
    private static let passPage = 100

    /// Tries each grant that is due now once, waiting for the pace but for no back-off, until `deadline`.
    package func runOnce(within deadline: Duration) async throws -> PassSummary {
        let started = time.now
        let end = time.sinceBoot + deadline
        await watchClock()
        let epoch = try await store.leaseTime().epoch
        for (client, stored) in try await store.clientHealth() {
            gate(of: client) { $0.learn(ClientHealth(stored: stored, epoch: epoch)) }
        }
        var summary = PassSummary()
        var cursor: DueEntry?
        try await withThrowingTaskGroup(of: [FlightEnd].self) { group in
            var pages = 0
            while true {
                let page = try await store.due(by: started, after: cursor, atMost: Self.passPage)
                guard !page.isEmpty else { break }
                cursor = page.last
                // A few pages aloft keep the wire busy while the slowest answer of a page is awaited.
                if pages >= 4, let ends = try await group.next() { for end in ends { summary.count(end) } }
                pages += 1
                group.addTask { await self.pass(page, dueBy: started, until: end) }
            }
            for try await ends in group { for end in ends { summary.count(end) } }
        }
        return summary
    }

    private func pass(_ page: [DueEntry], dueBy: Timestamp, until end: BootInstant) async -> [FlightEnd] {
        var ends: [FlightEnd] = []
        for (client, entries) in Dictionary(grouping: page, by: \.clientID) {
            var left = entries.map(\.id)[...]
            while !left.isEmpty {
                let allowed = await allowance(of: client, wanting: left.count, until: end)
                guard allowed > 0 else {
                    ends += left.map { _ in .abandoned }
                    break
                }
                ends += await launchAndJoin(Array(left.prefix(allowed)), dueBy: dueBy)
                left = left.dropFirst(allowed)
            }
        }
        return ends
    }

    /// How many grants of a client may go now: waits for its pace, and answers none when its breaker is open, this run is
    /// stopping, or the time is up.
    private func allowance(of client: String, wanting count: Int, until end: BootInstant) async -> Int {
        while !isStopping {
            let instant = time.sinceBoot
            guard instant < end else { return 0 }
            gate(of: client) { _ in }
            switch gates[client]?.health.breaker.permits(at: instant) {
            case .wait: return 0
            case .probeDue: return await beginProbe(client) ? 1 : 0
            case .all, nil: break
            }
            let room = min(count, configuration.mostInFlight - flights.count)
            let allowed = gates[client]?.pacer.take(upTo: room, at: instant) ?? 0
            guard allowed == 0 else { return allowed }
            let wait = max(gates[client]?.pacer.nextAvailable(at: instant) ?? .zero, .milliseconds(5))
            guard instant + wait < end else { return 0 }
            do {
                try await Task.sleep(for: wait)
            } catch {
                return 0
            }
        }
        return 0
    }

    /// Launches grants and waits until each has landed.
    private func launchAndJoin(_ ids: [GrantID], dueBy: Timestamp?) async -> [FlightEnd] {
        var ends: [FlightEnd] = []
        for landing in await launch(ids, dueBy: dueBy) { ends.append(await landing.end) }
        return ends
    }
}
