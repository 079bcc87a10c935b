/// Copies all records from one store to an empty one, and verifies the copy.
///
/// Copied records stay: after an interruption the same copy can be started again and continues. Workers must not use
/// either store during the copy. The source is marked as moved before anything is read from it, so that a worker that
/// paused, and does not appear among the live workers, can no longer claim or store anything in it.
package struct StoreCopy: Sendable {
    /// The two ends of a copy.
    package enum Side: String, Sendable {
        case source
        case target
    }

    /// The progress of a copy.
    package enum Progress: Hashable, Sendable {
        /// Workers that are not live hold leases. The last of these ends after this time.
        case waiting(Duration)
        case copied(ArchiveRecord.Kind, Int, of: Int)
        case compared(ArchiveRecord.Kind, Int, of: Int)
    }

    /// The contents of both stores at the end.
    package struct Summary: Hashable, Sendable {
        package var counts: [ArchiveRecord.Kind: Int] = [:]
        /// The checksum over all kinds in their order.
        package var digest = ArchiveDigest()
        /// Records that this run copied, without those of an earlier run.
        package var copiedNow = 0
    }

    /// Large enough that the cost of a transaction is small against its rows, and small enough to use little memory.
    package static let defaultPageSize = 1000

    /// The longest wait for leases: the duration of a worker's lease.
    private static let maximumWait: Duration = .seconds(30)
    private static let pollInterval: Duration = .seconds(1)

    private let source: any Store
    private let target: any Store
    /// The target, as the note in the source names it.
    private let location: String
    private let pageSize: Int
    private let pause: @Sendable (Duration) async throws -> Void
    private let report: @Sendable (Progress) -> Void

    package init(
        from source: any Store,
        to target: any Store,
        at location: String,
        pageSize: Int = StoreCopy.defaultPageSize,
        pause: @escaping @Sendable (Duration) async throws -> Void,
        report: @escaping @Sendable (Progress) -> Void = { _ in }
    ) {
        self.source = source
        self.target = target
        self.location = location
        self.pageSize = pageSize
        self.pause = pause
        self.report = report
    }

    package func run() async throws -> Summary {
        try await refuseWorkers()
        if try await !target.isReceiving {
            for kind in ArchiveRecord.Kind.allCases where try await target.count(of: kind) > 0 {
                throw StoreCopyError.occupied
            }
        }
        // Checks again, in the transaction that marks the target.
        try await target.beginReceiving()
        try await compareBeginnings()
        let movedTo = try await source.movedTo
        // A note of this copy is from an interrupted run: if this run fails, the source can be used again.
        let former = movedTo == Self.unfinished(location) ? nil : movedTo
        try await source.markMoved(to: Self.unfinished(location))
        let summary: Summary
        do {
            summary = try await copyAndCompare()
        } catch {
            try await source.markMoved(to: former)
            throw error
        }
        // The use of the source ends before that of the target begins, so that no failure of this program leaves both
        // usable. From here on a failure undoes nothing: the target might be in use although the response of its
        // database was lost.
        try await source.markMoved(to: location)
        try await target.endReceiving()
        return summary
    }

    /// The note in the source while the copy is not complete.
    package static func unfinished(_ location: String) -> String {
        "\(location) (a copy that is not finished: run the same store copy again)"
    }

    private func copyAndCompare() async throws -> Summary {
        try await waitForLeases()
        var summary = Summary()
        for kind in ArchiveRecord.Kind.allCases { summary.copiedNow += try await copy(kind) }
        for kind in ArchiveRecord.Kind.allCases { try await compare(kind, into: &summary) }
        // A worker that was started before that note might have reported since.
        try await refuseWorkers()
        try await target.takeOverID(of: source)
        return summary
    }

    /// Waits until every request that was sent under a lease of the source must have ended.
    private func waitForLeases() async throws {
        var waited: Duration = .zero
        while waited < Self.maximumWait, let remaining = try await source.remainingLease() {
            report(.waiting(remaining))
            let span = min(remaining, Self.pollInterval, Self.maximumWait - waited)
            try await pause(span)
            waited += span
        }
    }

    private func refuseWorkers() async throws {
        for (side, store) in [(Side.source, source), (.target, target)] {
            let workers = try await store.liveWorkers()
            guard workers.isEmpty else { throw StoreCopyError.workers(side, workers.map(\.id)) }
        }
    }

    /// Detects early that the target holds a part of a different copy.
    private func compareBeginnings() async throws {
        for kind in ArchiveRecord.Kind.allCases {
            let targetRecords = try await target.records(of: kind, after: nil, atMost: 1)
            guard !targetRecords.isEmpty else { continue }
            let sourceRecords = try await source.records(of: kind, after: nil, atMost: 1)
            guard sourceRecords == targetRecords else {
                throw StoreCopyError.differs(
                    kind,
                    source: ArchiveDigest(of: sourceRecords),
                    target: ArchiveDigest(of: targetRecords)
                )
            }
        }
    }

    private func copy(_ kind: ArchiveRecord.Kind) async throws -> Int {
        let all = try await source.count(of: kind)
        let present = try await target.count(of: kind)
        var last = try await target.lastRecord(of: kind)
        var copied = 0
        while true {
            let page = try await source.records(of: kind, after: last, atMost: pageSize)
            guard !page.isEmpty else { return copied }
            // A copy can be interrupted between two pages: each is stored as a whole or not at all.
            try Task.checkCancellation()
            try await target.receive(page)
            copied += page.count
            last = page.last
            report(.copied(kind, present + copied, of: all))
        }
    }

    private func compare(_ kind: ArchiveRecord.Kind, into summary: inout Summary) async throws {
        let all = try await source.count(of: kind)
        async let targetDigest = digest(of: kind, in: target, after: summary.digest) { _ in }
        let sourceDigest = try await digest(of: kind, in: source, after: summary.digest) { count in
            report(.compared(kind, count, of: all))
        }
        let copied = try await targetDigest
        guard sourceDigest == copied else { throw StoreCopyError.differs(kind, source: sourceDigest, target: copied) }
        summary.counts[kind] = sourceDigest.count - summary.digest.count
        summary.digest = sourceDigest
    }

    private func digest(
        of kind: ArchiveRecord.Kind,
        in store: any Store,
        after former: ArchiveDigest,
        report: (Int) -> Void
    ) async throws -> ArchiveDigest {
        var digest = former
        var last: ArchiveRecord?
        while true {
            let page = try await store.records(of: kind, after: last, atMost: pageSize)
            guard !page.isEmpty else { return digest }
            try Task.checkCancellation()
            for record in page { digest.add(record) }
            last = page.last
            report(digest.count - former.count)
        }
    }
}

/// Why the copy did not take place, or is not complete.
package enum StoreCopyError: Error, Hashable, Sendable {
    /// These workers use the store.
    case workers(StoreCopy.Side, [String])
    /// The target holds records that do not come from a copy.
    case occupied
    /// The target's records of this kind differ from the source's.
    case differs(ArchiveRecord.Kind, source: ArchiveDigest, target: ArchiveDigest)
}
