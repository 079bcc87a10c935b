import Base
import Crypto
import Storage

/// Performs a key rotation step by step, until it is finished or stopped.
struct KeyRotation: Sendable {
    /// The time a worker can take to follow: it reports every five seconds, and a dead one is forgotten after thirty.
    static let workerTimeout: Duration = .seconds(120)
    static let pollingInterval: Duration = .seconds(1)

    /// The progress of a rotation, for the person who waits.
    enum ProgressEvent: Equatable, Sendable {
        case added(KeyID)
        case resumed(RotationStep)
        case waiting(RotationStep)
        case promoted(KeyID)
        case resealed(tokens: Int, of: Int)
    }

    /// The outcome of a finished rotation.
    struct Outcome: Equatable, Sendable {
        var sealingKeyID: KeyID
        var resealed: Int
        /// Keys of the ring that no stored token needs.
        var retirable: [KeyID]
        /// Keys that were retired more than a day ago.
        var removable: [KeyID]
        /// Users with a token that could not be sealed again.
        var unreadable: [String]
        /// Tokens that an older key of the ring still seals.
        var remainingTokens: Int
        var warnings: [String]
    }

    private struct Progress {
        var isBegun = false
        var isExhausted = false
        var resealed = 0
        var unreadable: [String] = []
        var waitingSince: BootInstant?
        var reportedAt: BootInstant?

        func isReportDue(at now: BootInstant) -> Bool {
            guard let reportedAt else { return true }
            return now - reportedAt >= WorkerHeartbeat.interval
        }
    }

    let keyFile: String
    let wrapping: (any KeyRingWrapping)?
    let store: any Store
    let vault: TokenVault
    let heartbeat: WorkerHeartbeat
    let time: any TimeSource
    let pause: @Sendable (Duration) async throws -> Void
    /// Called between batches and while waiting.
    let isStopping: @Sendable () -> Bool
    let reportProgress: @Sendable (ProgressEvent) -> Void

    /// Runs to the end, and returns `nil` if it was stopped before, so that another run can continue.
    func run() async throws -> Outcome? {
        var progress = Progress()
        while true {
            let state = try await readState(progress)
            let step = RotationStep.next(in: state)
            if case .finish(let key) = step { return outcome(with: key, state: state, progress: progress) }
            // Checked only now, so that stopping a finished rotation does not ask for another run.
            if isStopping() { return nil }
            if !progress.isBegun, step != .addKey { reportProgress(.resumed(step)) }
            progress.isBegun = true
            switch step {
            case .awaitHolders(let key, let lacking):
                try await wait(step, progress: &progress, orElse: CommandError(workers: lacking, doNot: "hold", key))
                continue
            case .awaitSealers(let key, let lacking):
                try await wait(
                    step,
                    progress: &progress,
                    orElse: CommandError(workers: lacking, doNot: "seal with", key)
                )
                continue
            case .addKey:
                let key = try await BlockingCallQueue.files.run { [keyFile, wrapping] in
                    try KeyRingFile.addPending(path: keyFile, wrapping: wrapping)
                }
                reportProgress(.added(key))
            case .promote(let key):
                try await store.recordKey(key, of: vault.ring.current)
                try await BlockingCallQueue.files.run { [keyFile, wrapping] in
                    try KeyRingFile.promote(key, path: keyFile, wrapping: wrapping)
                }
                reportProgress(.promoted(key))
            case .reseal:
                try await reseal(state, progress: &progress)
            case .finish:
                break
            }
            progress.waitingSince = nil
        }
    }

    private func readState(_ progress: Progress) async throws -> RotationState {
        // The ring is read before the report: if it cannot be read, the rotation must end and not continue with the old
        // one.
        try await BlockingCallQueue.files.run { [ring = vault.ring] in
            ring.updateFromFile()
            _ = try ring.reload()
        }
        try await heartbeat.report()
        if let refusal = vault.ring.rejection { throw CommandError(.configuration, refusal) }
        return RotationState(
            keys: KeyRingSummary(vault.ring.current),
            workers: try await store.liveWorkers(),
            keysInUse: try await store.keysInUse(),
            isBegun: progress.isBegun,
            isExhausted: progress.isExhausted
        )
    }

    private func wait(_ step: RotationStep, progress: inout Progress, orElse failure: CommandError) async throws {
        let since = progress.waitingSince ?? time.sinceBoot
        progress.waitingSince = since
        guard time.sinceBoot - since < Self.workerTimeout else { throw failure }
        reportProgress(.waiting(step))
        try await pause(Self.pollingInterval)
    }

    /// Makes one pass over all grants.
    private func reseal(_ state: RotationState, progress: inout Progress) async throws {
        let total = progress.resealed + state.outdatedTokens
        let resealedBefore = progress.resealed
        var cursor: GrantID?
        progress.unreadable = []
        while !isStopping() {
            let started = time.sinceBoot
            if progress.isReportDue(at: started) {
                try await heartbeat.report()
                progress.reportedAt = started
            }
            let batch = try await nextBatch(after: cursor, outdated: state.outdatedKeys)
            progress.resealed += batch.resealed
            progress.unreadable += batch.unreadable
            guard let last = batch.last else {
                progress.isExhausted = progress.resealed == resealedBefore
                return
            }
            cursor = last
            guard batch.resealed > 0 else { continue }
            reportProgress(.resealed(tokens: progress.resealed, of: total))
            // Pause for as long as the batch took, so that other writers get at least half of the time.
            try await pause(max(.milliseconds(1), time.sinceBoot - started))
        }
    }

    private func outcome(with key: KeyID, state: RotationState, progress: Progress) -> Outcome {
        Outcome(
            sealingKeyID: key,
            resealed: progress.resealed,
            retirable: state.keys.entries.filter { $0.role == .opens && (state.keysInUse[$0.id] ?? 0) == 0 }
                .map(\.id),
            removable: state.keys.expired(at: time.now).filter { (state.keysInUse[$0] ?? 0) == 0 },
            unreadable: progress.unreadable,
            remainingTokens: state.outdatedTokens,
            warnings: state.keys.warnings(state.keysInUse)
        )
    }
}

extension CommandError {
    /// Reports workers that did not follow in time.
    fileprivate init(workers: [String], doNot verb: String, _ key: KeyID) {
        self.init(
            .leftForLater,
            """
            these workers do not \(verb) key \(key) yet: \(workers.joined(separator: ", ")) (process id first)
            a worker that gets its key ring by LoadCredential reads it only at its start: restart it
            any other must be able to read the key file that this command changes
            then run refresh-worker keys rotate again: it continues from here
            """
        )
    }
}
