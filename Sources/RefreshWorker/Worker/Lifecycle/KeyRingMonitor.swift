import Crypto
import Storage
import Synchronization

/// Compares this process's key ring with the keys that seal stored tokens, and with the rings of the other workers.
///
/// The database records each key that stored tokens need, with a known value that the key has sealed (``KeyChecks``).
/// A ring is adopted only if it opens the value of every recorded key. Otherwise the ring in memory stays in use. If
/// that ring lacks a key of the other workers, the process must not refresh: it would seal with a key that they no
/// longer use, and could not open their tokens.
final class KeyRingMonitor: Sendable {
    /// Counting the keys of all grants takes seconds in a large database.
    private static let reportsBetweenCounts = 12

    private struct State {
        /// The last ring that was found to fit.
        var fitting: KeyRing?
        var refused: KeyRing?
        var reportsUntilCount = 0
    }

    private let store: any Store
    private let ring: ReloadableKeyRing
    private let worker: String
    private let state = Mutex(State())

    init(store: any Store, ring: ReloadableKeyRing, worker: String) {
        self.store = store
        self.ring = ring
        self.worker = worker
    }

    /// Adopts the ring in the file, or sets the reason against it in ``ReloadableKeyRing/rejection``.
    func reloadFile() async throws {
        guard let candidate = try ring.reload() else {
            ring.rejection = nil
            return
        }
        guard state.withLock({ $0.fitting != nil }) else { return ring.adopt(candidate) }
        let wasRefused = state.withLock { state in
            defer { state.refused = candidate }
            return state.refused?.isSame(as: candidate) ?? false
        }
        // Secrets that this process has sealed, and tokens that were bound for it, might still wait to be stored.
        let inUse = ring.current.keys.filter(\.isBinding).map(\.id) + [ring.current.sealingKeyID]
        let keepsKeysInUse = inUse.allSatisfy(candidate.keyIDs.contains)
        let fit = try await compareWithRecordedKeys(
            candidate,
            mayCount: keepsKeysInUse && (!wasRefused || takeTurnToCount())
        )
        guard case .fits = fit else {
            ring.rejection =
                "\(sentence(fit)). The worker continues with the keys in memory; correct the file before you restart it"
            return
        }
        ring.rejection = nil
        ring.adopt(candidate)
    }

    /// Returns the reason why this process must not refresh, if there is one.
    ///
    /// Throws at the start for a ring that is not this database's.
    func check() async throws -> String? {
        let current = ring.current
        let (isFirst, hasFitted) = state.withLock { ($0.fitting == nil, $0.fitting?.isSame(as: current) ?? false) }
        guard !hasFitted || ring.standbyReason != nil else { return nil }
        var fit = try await compareWithRecordedKeys(current, mayCount: isFirst || takeTurnToCount())
        if fit == .fits {
            try await store.recordKey(current.sealingKeyID, of: current)
            fit = try await store.fit(of: current)
        }
        switch fit {
        case .fits:
            state.withLock { $0.fitting = current }
            return nil
        case .foreign where isFirst:
            throw CommandError(.configuration, sentence(fit))
        case .lacks, .foreign:
            return "\(sentence(fit)). Until then this worker refreshes nothing"
        }
    }

    /// Compares with the rings of the other workers, and returns the reason why this process must not refresh, if there
    /// is one.
    func compare(with reports: [WorkerReport]) async throws -> String? {
        let ownKeyIDs = Set(ring.current.keyIDs)
        let others = reports.filter { $0.id != worker }
        let doubts = ring.missingKeys.subtracting(ownKeyIDs)
        let sealing = Set(others.map(\.sealingKeyID)).subtracting(ownKeyIDs)
        guard !doubts.isEmpty || !sealing.isEmpty else {
            ring.resolveMissingKeys(lost: [])
            return nil
        }
        // No stored token needs a key that is not recorded in the database, even if a worker reports it.
        let existing = try await store.recordedKeyIDs().union(others.flatMap(\.keyIDs).filter(doubts.contains))
        let missing = doubts.union(sealing).intersection(existing)
        ring.resolveMissingKeys(lost: doubts.subtracting(existing))
        guard !missing.isEmpty else { return nil }
        return "\(sentence(.lacks(missing.sorted()))). Until then this worker refreshes nothing"
    }

    /// Compares a ring with the keys that the database records. Those that nobody needs are removed there.
    private func compareWithRecordedKeys(_ candidate: KeyRing, mayCount: Bool) async throws -> KeyRingFit {
        let fit = try await store.fit(of: candidate)
        guard fit != .fits, mayCount else { return fit }
        // The count can take seconds. A worker that leaves during it is seen only before, one that starts only after.
        let usedBefore = try await keysUsedByOthers()
        let stored = try await store.keysInUse()
        let used = try await keysUsedByOthers().union(usedBefore)
        guard fit.keyIDs.allSatisfy({ stored[$0, default: 0] == 0 && !used.contains($0) }) else { return fit }
        try await store.removeRecordedKeys(fit.keyIDs, with: candidate)
        return try await store.fit(of: candidate)
    }

    /// Returns the keys that a token of another live worker might need before it is stored.
    ///
    /// Example: a worker without the binding key K starts while another one exchanges the first code with K. No stored
    /// token names K yet, and its check must stay. A key that this process lacks might be a binding key. One that it
    /// knows as a sealing key matters only to the workers that seal with it.
    private func keysUsedByOthers() async throws -> Set<KeyID> {
        let sealingKeys = ring.current.keys.filter { !$0.isBinding }.map(\.id)
        var used: Set<KeyID> = []
        for report in try await store.liveWorkers() where report.id != worker {
            used.formUnion(Set(report.keyIDs).subtracting(sealingKeys))
            used.insert(report.sealingKeyID)
        }
        return used
    }

    private func takeTurnToCount() -> Bool {
        state.withLock { state in
            state.reportsUntilCount -= 1
            guard state.reportsUntilCount < 0 else { return false }
            state.reportsUntilCount = Self.reportsBetweenCounts
            return true
        }
    }

    private func sentence(_ fit: KeyRingFit) -> String {
        let ids = fit.keyIDs.map(\.description).joined(separator: ", ")
        return switch fit {
        case .fits: "\(ring.name) fits"
        case .lacks:
            """
            \(ring.name) lacks \(ids), which other workers or stored tokens need: replace it by \
            a copy that holds every key; if a key is lost for good, run: refresh-worker keys retire --lost ID
            """
        case .foreign:
            """
            \(ring.name) is not the one that sealed the tokens of this database: it does not open what was sealed with \
            \(ids). Put the right key ring in its place, or name it with --key-file
            """
        }
    }
}
