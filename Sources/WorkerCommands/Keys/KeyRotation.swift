import Clocks
import Secrets
import Store
import WorkerConfiguration
import WorkerLifecycle

/// Performs a key rotation step by step, until it is finished or stopped.
struct KeyRotation: Sendable {
    /// The time a worker may take to follow: it reports every five seconds, and a dead one is forgotten after thirty.
    static let patience: Duration = .seconds(120)
    static let glance: Duration = .seconds(1)

    /// The progress of a rotation, for the person who waits.
    enum News: Equatable, Sendable {
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
        var leftTokens: Int
        var warnings: [String]
    }

    /// The progress of this run.
    private struct Course {
        var isBegun = false
        var isExhausted = false
        var resealed = 0
        var unreadable: [String] = []
        var waitingSince: BootInstant?
        var reportedAt: BootInstant?
    }

    let keyFile: String
    let store: any GrantStore
    let vault: TokenVault
    let presence: WorkerHeartbeat
    let time: any TimeSource
    let pause: @Sendable (Duration) async throws -> Void
    /// Called between batches and while waiting.
    let isStopping: @Sendable () -> Bool
    let tell: @Sendable (News) -> Void

    /// Runs to the end; returns `nil` if it was stopped before, so that another run can continue.
    func run() async throws -> Outcome? {
        var course = Course()
        while true {
            let picture = try await look(course)
            let step = RotationStep.next(in: picture)
            if case .finish(let key) = step { return outcome(with: key, picture, course) }
            // Checked only now, so that stopping a finished rotation does not ask for another run.
            if isStopping() { return nil }
            if !course.isBegun, step != .addKey { tell(.resumed(step)) }
            course.isBegun = true
            switch step {
            case .awaitHolders(let key, let lacking):
                try await wait(step, &course, orElse: CommandFailure(workers: lacking, doNot: "hold", key))
                continue
            case .awaitSealers(let key, let lacking):
                try await wait(step, &course, orElse: CommandFailure(workers: lacking, doNot: "seal with", key))
                continue
            case .addKey:
                let key = try await BlockingCallQueue.files.run { [keyFile] in try KeyRingFile.addPending(path: keyFile)
                }
                tell(.added(key))
            case .promote(let key):
                try await StoredKeyChecks(store).add(key, of: vault.ring.current)
                try await BlockingCallQueue.files.run { [keyFile] in try KeyRingFile.promote(key, path: keyFile) }
                tell(.promoted(key))
            case .reseal:
                try await reseal(picture, &course)
            case .finish:
                break
            }
            course.waitingSince = nil
        }
    }

    private func look(_ course: Course) async throws -> RotationState {
        // The ring is read before the report: if it cannot be read, the rotation must end and not continue with the old
        // one.
        try await BlockingCallQueue.files.run { [ring = vault.ring] in _ = try ring.reload() }
        try await presence.report()
        if let refusal = vault.ring.refusal { throw CommandFailure(.configuration, refusal) }
        return RotationState(
            roster: KeyRingSummary(vault.ring.current),
            workers: try await store.liveWorkers(),
            keysInUse: try await store.keysInUse(),
            isBegun: course.isBegun,
            isExhausted: course.isExhausted
        )
    }

    private func wait(_ step: RotationStep, _ course: inout Course, orElse failure: CommandFailure) async throws {
        let since = course.waitingSince ?? time.sinceBoot
        course.waitingSince = since
        guard time.sinceBoot - since < Self.patience else { throw failure }
        tell(.waiting(step))
        try await pause(Self.glance)
    }

    /// Makes one pass over all grants.
    private func reseal(_ picture: RotationState, _ course: inout Course) async throws {
        let resealing = TokenResealing(store: store, vault: vault)
        let total = course.resealed + picture.outdatedTokens
        let resealedBefore = course.resealed
        var cursor: GrantID?
        course.unreadable = []
        while !isStopping() {
            let started = time.sinceBoot
            if course.reportedAt.map({ started - $0 >= WorkerHeartbeat.interval }) ?? true {
                try await presence.report()
                course.reportedAt = started
            }
            let batch = try await resealing.nextBatch(after: cursor, outdated: picture.outdatedKeys)
            course.resealed += batch.resealed
            course.unreadable += batch.unreadable
            guard let last = batch.last else {
                course.isExhausted = course.resealed == resealedBefore
                return
            }
            cursor = last
            guard batch.resealed > 0 else { continue }
            tell(.resealed(tokens: course.resealed, of: total))
            // Pause for as long as the batch took, so that other writers get at least half of the time.
            try await pause(max(.milliseconds(1), time.sinceBoot - started))
        }
    }

    private func outcome(with key: KeyID, _ picture: RotationState, _ course: Course) -> Outcome {
        Outcome(
            sealingKeyID: key,
            resealed: course.resealed,
            retirable: picture.roster.entries.filter { $0.role == .opens && (picture.keysInUse[$0.id] ?? 0) == 0 }
                .map(\.id),
            removable: picture.roster.expired(at: time.now).filter { (picture.keysInUse[$0] ?? 0) == 0 },
            unreadable: course.unreadable,
            leftTokens: picture.outdatedTokens,
            warnings: KeyListing.warnings(roster: picture.roster, keysInUse: picture.keysInUse)
        )
    }
}

extension CommandFailure {
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
