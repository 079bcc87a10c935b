import Base
import Storage

/// The scan: pages of the due index come into the window, and due grants go from there into their client's queue.
extension RefreshEngineState {
    /// The number of entries in one page of the due index.
    static let pageSize = 2_000
    /// The largest number of due grants of one client in memory, and of coming grants of all clients.
    ///
    /// The others stay in the store.
    static let maximumQueue = 4_000
    static let maximumWindow = 100_000
    /// The time for which another worker's grant must be overdue before this worker tries to claim it.
    private static let otherShareDelay: Duration = .milliseconds(1_500)

    func isScanDue(at instant: BootInstant) -> Bool { instant >= nextScan }

    mutating func beginScan(at instant: BootInstant) { nextScan = instant + configuration.scanInterval }

    /// Returns `true` if the beginning of a client's part of the index is to be read, or `false` while stopping.
    ///
    /// It is read in each scan, even if a long index is being read on from its last page: grants that another worker
    /// had claimed and left are there.
    mutating func beginReading(_ client: String) -> Bool {
        guard !isStopping else { return false }
        addGate(of: client)
        return true
    }

    /// Returns the entry after which to read on, or `nil` if the index is read to its end, or has filled the queue.
    func cursorToReadOn(_ client: String) -> DueEntry? {
        guard !isStopping, let gate = gates[client], let cursor = gate.cursor,
            gate.queue.count < Self.maximumQueue, window.count < Self.maximumWindow
        else { return nil }
        return cursor
    }

    /// The clients whose queue runs short while the index has more.
    var clientsToReadOn: [String] {
        gates.filter { $1.cursor != nil && $1.queue.count < Self.maximumQueue / 2 }.map(\.key)
    }

    /// Takes the page after `cursor`, or from the beginning, into the window and the queue.
    ///
    /// The cursor moves only past entries that were taken, so that the grants that are due first are refreshed first.
    mutating func pageArrived(
        _ page: [DueEntry],
        of client: String,
        after cursor: DueEntry?,
        under conditions: Conditions
    ) {
        queueDueGrants(under: conditions)
        let taken = take(page, of: client, at: conditions.now)
        queueDueGrants(under: conditions)
        // A page from the beginning must not move the cursor back.
        guard cursor == gates[client]?.cursor else { return }
        let isLast = taken.count == page.count && page.count < Self.pageSize
        gates[client]?.cursor = isLast ? nil : taken.last ?? cursor
    }

    /// Takes a page into the window as far as the queue can take due grants, and returns the entries that were
    /// considered.
    ///
    /// Only a worker that is not behind with its own share takes overdue grants of other workers: otherwise all workers
    /// that are behind would compete for the same grants.
    private mutating func take(_ page: [DueEntry], of client: String, at now: Timestamp) -> ArraySlice<DueEntry> {
        let dueBefore = now - Self.otherShareDelay
        var free = Self.maximumQueue - (gates[client]?.queue.count ?? 0)
        let isBehind =
            free < Self.maximumQueue / 2
            || page.contains { $0.dueAt <= dueBefore && share.owns($0.id) && isFree($0, of: client) }
        for (index, entry) in page.enumerated() {
            let isTaken = share.owns(entry.id) || !isBehind && entry.dueAt <= dueBefore
            guard isTaken, isFree(entry, of: client) else { continue }
            if entry.dueAt <= now {
                guard free > 0 else { return page[..<index] }
                free -= 1
            }
            window.set(entry.id, of: client, dueAt: entry.dueAt)
        }
        return page[...]
    }

    /// `false` if the grant is queued, in flight, or a deferred revocation. A deferred grant whose due time has changed
    /// was connected again, and can be queued.
    private func isFree(_ entry: DueEntry, of client: String) -> Bool {
        slots[entry.id] == nil && !queued.contains(entry.id)
            && gates[client]?.deferredRevocations.deadline(of: entry.id.rawValue) != entry.dueAt
    }

    /// Moves the grants that are due from the window into the queues.
    mutating func queueDueGrants(under conditions: Conditions) {
        while let (id, client) = window.popDue(at: conditions.now) {
            guard slots[id] == nil else { continue }
            addGate(of: client)
            guard (gates[client]?.queue.count ?? 0) < Self.maximumQueue, queued.insert(id).inserted else { continue }
            gates[client]?.append(id)
        }
    }

    /// Puts a grant's next due time into the window if it is near enough.
    mutating func expect(_ id: GrantID, of client: String, dueAt: Timestamp, at now: Timestamp) {
        guard dueAt <= now + configuration.scanAhead else { return }
        window.set(id, of: client, dueAt: dueAt)
    }

    /// Ends the repair after a step of the clock: the window, which was ordered by the former clock, is read again.
    mutating func clockRepaired(at instant: BootInstant) {
        clock.repaired()
        window.removeAll()
        for client in gates.keys { gates[client]?.cursor = nil }
        nextScan = instant
    }
}
