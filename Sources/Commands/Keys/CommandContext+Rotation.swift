import Base
import Crypto
import Storage
private import Synchronization
package import Worker

/// `keys rotate`: replaces the sealing key.
extension CommandContext {
    package func rotateKeys(isJSON: Bool = false) async throws -> ExitCode {
        let vault = try openVault()
        let signals = await SignalStream.start()
        let stop = StopFlag()
        let listener = Task {
            for await signal in signals.signals where signal != .hangUp { stop.raise() }
        }
        defer {
            signals.stop()
            listener.cancel()
        }
        let outcome = try await withExistingStore(for: .changing) { store in
            let outcome = try await rotate(store: store, vault: vault, until: stop, isJSON: isJSON)
            for key in outcome?.removable ?? [] {
                try await Self.remove(
                    key,
                    from: configuration.keyFile,
                    ring: vault.ring.current,
                    keyChecks: StoredKeyChecks(store)
                )
            }
            return outcome
        }
        guard let outcome else {
            throw CommandFailure(
                .leftForLater,
                "stopped; completed steps are kept. Run refresh-worker keys rotate again: it continues from here"
            )
        }
        (isJSON ? [outcome.json] : outcome.lines).forEach { Output.standard.line($0) }
        outcome.warnings.forEach { Output.error.line($0) }
        guard outcome.remainingTokens == 0 else { throw CommandFailure(remaining: outcome) }
        return .success
    }

    private func rotate(
        store: any GrantStore,
        vault: TokenVault,
        until stop: StopFlag,
        isJSON: Bool
    ) async throws -> KeyRotation.Outcome? {
        let heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: workerName,
            diagnostics: diagnostics
        )
        let progress = TerminalProgress(to: .error)
        let rotation = KeyRotation(
            keyFile: configuration.keyFile,
            store: store,
            vault: vault,
            heartbeat: heartbeat,
            time: time,
            pause: { [time] in try await time.sleep(for: $0) },
            isStopping: { stop.isRaised },
            reportProgress: { event in
                if event.isPassing {
                    progress.show(event.sentence)
                } else {
                    progress.clear()
                    (isJSON ? Output.error : Output.standard).line(event.sentence)
                }
            }
        )
        do {
            let outcome = try await rotation.run()
            progress.clear()
            await heartbeat.leave()
            return outcome
        } catch {
            progress.clear()
            await heartbeat.leave()
            throw error
        }
    }
}

/// A flag that a signal sets and the rotation reads between batches.
private final class StopFlag: Sendable {
    private let flag = Atomic(false)

    var isRaised: Bool { flag.load(ordering: .relaxed) }

    func raise() { flag.store(true, ordering: .relaxed) }
}

extension KeyRotation.ProgressEvent {
    /// `true` if the event matters only while it lasts.
    fileprivate var isPassing: Bool {
        switch self {
        case .added, .resumed, .promoted: false
        case .waiting, .resealed: true
        }
    }

    fileprivate var sentence: String {
        switch self {
        case .added(let key): "added key \(key) to the ring; it does not seal until every live worker holds it"
        case .resumed: "continuing a rotation that was begun earlier"
        case .waiting(.awaitHolders(let key, let lacking)):
            "waiting until these workers hold key \(key): \(lacking.joined(separator: ", "))"
        case .waiting(.awaitSealers(let key, let lacking)):
            "waiting until these workers seal with key \(key): \(lacking.joined(separator: ", "))"
        case .waiting: "waiting"
        case .promoted(let key): "key \(key) is the sealing key now: it seals every token that is stored from now on"
        case .resealed(let done, let total): "sealed \(done) of \(total) tokens again"
        }
    }
}

extension KeyRotation.Outcome {
    /// The outcome for programs.
    var json: String {
        var line = JSONLine()
        line.field("sealing_key", sealingKeyID.description)
        line.field("resealed", resealed)
        line.field("remaining_tokens", remainingTokens)
        line.array("retirable_keys") { array in retirable.forEach { array.element($0.description) } }
        line.array("removed_keys") { array in removable.forEach { array.element($0.description) } }
        line.array("unreadable_users") { array in unreadable.forEach { array.element($0) } }
        return line.text
    }

    fileprivate var lines: [String] {
        let retire = retirable.map { "  refresh-worker keys retire \($0)" }
        let advice = """
            Back the key ring up now. When no backup of the database from before today is needed any more, run:
            """
        return ["finished: \(KeyListing.tokens(resealed)) sealed again with key \(sealingKeyID)"]
            + removable.map { "removed the retired key \($0) from the ring" }
            + (retire.isEmpty ? [] : [advice] + retire)
    }
}

extension CommandFailure {
    /// The number of users that are named; the others are counted.
    private static let namedUsers = 20

    fileprivate init(remaining outcome: KeyRotation.Outcome) {
        let named = outcome.unreadable.prefix(Self.namedUsers).map { "\(DisplayedText($0))" }
        let rest = outcome.unreadable.count - named.count
        self.init(
            .leftForLater,
            """
            \(KeyListing.tokens(outcome.remainingTokens)) could not be sealed again, because the key that sealed them does \
            not open them; these users must sign in again, or be disconnected (refresh-worker grants disconnect USER):
            \(named.joined(separator: "\n"))\(rest > 0 ? "\nand \(rest) more" : "")
            """
        )
    }
}
