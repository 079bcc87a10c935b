import Base
import Crypto
import Storage

extension Command {
    /// `keys rotate`: replaces the sealing key.
    static let rotateKeys = Command(
        words: ["keys", "rotate"],
        summary: "add a new key and seal all tokens with it",
        discussion: """
            Adds a new key to the key ring, waits until every live worker reports that it holds it, then seals the \
            stored tokens again while the workers run. An interrupted rotation continues when the command is run \
            again. The old key stays in the ring until it is retired. With --json, progress is written to standard \
            error.
            """,
        options: [.jsonObject],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            "refresh-worker keys rotate":
                "once a year, or after a person who knew the key has left"
        ],
        exitCodes: .ofDatabase()
    ) { _, context in
        let vault = try context.openVault()
        let signals = await SignalStream.start()
        // The rotation reads it between batches.
        let stop = Shared(false)
        let listener = Task {
            for await signal in signals.signals where signal != .hangUp { stop.value = true }
        }
        defer {
            signals.stop()
            listener.cancel()
        }
        let outcome = try await context.withExistingStore(for: .changing) { store in
            let outcome = try await rotate(store: store, vault: vault, until: stop, in: context)
            for key in outcome?.removable ?? [] {
                try await CommandContext.remove(
                    key,
                    from: context.configuration.keyFile,
                    ring: vault.ring.current,
                    store: store
                )
            }
            return outcome
        }
        guard let outcome else {
            throw CommandError(
                .leftForLater,
                "stopped; completed steps are kept. Run refresh-worker keys rotate again: it continues from here"
            )
        }
        context.answer(outcome.lines.joined(separator: "\n"), json: outcome.write)
        outcome.warnings.forEach { Output.error.line($0) }
        guard outcome.remainingTokens == 0 else { throw CommandError(remaining: outcome) }
        return .success
    }

    private static func rotate(
        store: any Store,
        vault: TokenVault,
        until stop: Shared<Bool>,
        in context: CommandContext
    ) async throws -> KeyRotation.Outcome? {
        let heartbeat = context.heartbeat(in: store, of: vault)
        let progress = TerminalProgress()
        let rotation = KeyRotation(
            keyFile: context.configuration.keyFile,
            store: store,
            vault: vault,
            heartbeat: heartbeat,
            time: context.time,
            pause: { [time = context.time] in try await time.sleep(for: $0) },
            isStopping: { stop.value },
            reportProgress: { event in
                if event.isPassing {
                    progress.show(event.sentence)
                } else {
                    progress.clear()
                    (context.printsJSON ? Output.error : Output.standard).line(event.sentence)
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
    /// Adds the outcome for programs.
    func write(to line: inout JSONLine) {
        line.field("sealing_key", sealingKeyID.description)
        line.field("resealed", resealed)
        line.field("remaining_tokens", remainingTokens)
        line.strings("retirable_keys", retirable.map(\.description))
        line.strings("removed_keys", removable.map(\.description))
        line.strings("unreadable_users", unreadable)
    }

    fileprivate var lines: [String] {
        let retire = retirable.map { "  refresh-worker keys retire \($0)" }
        let advice = """
            Back the key ring up now. When no backup of the database from before today is needed any more, run:
            """
        return ["finished: \(resealed.counted("token")) sealed again with key \(sealingKeyID)"]
            + removable.map { "removed the retired key \($0) from the ring" }
            + (retire.isEmpty ? [] : [advice] + retire)
    }
}

extension CommandError {
    /// The number of users that are named.
    ///
    /// The others are only counted.
    private static let maximumNames = 20

    fileprivate init(remaining outcome: KeyRotation.Outcome) {
        let named = outcome.unreadable.prefix(Self.maximumNames).map { "\(DisplayedText($0))" }
        let rest = outcome.unreadable.count - named.count
        self.init(
            .leftForLater,
            """
            \(outcome.remainingTokens.counted("token")) could not be sealed again, because the key that sealed them does \
            not open them; these users must sign in again, or be disconnected (refresh-worker grants disconnect USER):
            \(named.joined(separator: "\n"))\(rest > 0 ? "\nand \(rest) more" : "")
            """
        )
    }
}

/// Seals stored tokens again with the current key, a batch of grants at a time.
extension KeyRotation {
    /// The number of grants in a batch: few enough that no worker waits long to write.
    private static let batchSize = 100

    /// The last grant of a batch, or `nil` at the end, the number of tokens that are now sealed with the sealing key, and
    /// the users with a token that its key does not open.
    typealias Batch = (last: GrantID?, resealed: Int, unreadable: [String])

    /// Reads the next grants and seals again those of their tokens that one of `keys` seals.
    ///
    /// Each token is read again in the transaction that seals it, because workers might write between the first read
    /// and that transaction.
    func nextBatch(after cursor: GrantID?, outdated keys: Set<KeyID>) async throws -> Batch {
        let page = try await store.grants(after: cursor, in: nil, atMost: Self.batchSize)
        let outdated = page.filter { $0.isSealed(withOneOf: keys) }.map(\.id)
        guard !outdated.isEmpty else { return (page.last?.id, 0, []) }
        return try await store.transact { transaction in
            var batch: Batch = (page.last?.id, 0, [])
            for id in outdated {
                guard var grant = try transaction.grant(id) else { continue }
                let count = try reseal(&grant, outdated: keys)
                if count > 0 { try transaction.update(grant) }
                batch.resealed += count
                if grant.isSealed(withOneOf: keys) { batch.unreadable.append(grant.userID) }
            }
            return batch
        }
    }

    /// Seals the tokens that can be opened and returns their number.
    private func reseal(_ grant: inout Grant, outdated keys: Set<KeyID>) throws -> Int {
        var refreshToken: Grant.RefreshToken?
        var accessToken: SealedSecret?
        if let sealed = grant.refreshToken?.sealed, keys.contains(sealed.keyID),
            let secret = try readable({ () throws(CryptoError) in try vault.openRefreshToken(of: grant) })
        {
            refreshToken = try vault.seal(refreshToken: secret, for: grant.id)
        }
        if let sealed = grant.accessToken?.sealed, keys.contains(sealed.keyID),
            let secret = try readable({ () throws(CryptoError) in try vault.openAccessToken(of: grant) })
        {
            accessToken = try vault.seal(accessToken: secret, for: grant.id)
        }
        grant.reseal(refreshToken: refreshToken, accessToken: accessToken)
        return (refreshToken == nil ? 0 : 1) + (accessToken == nil ? 0 : 1)
    }

    /// Returns the opened token, or `nil` if it is damaged: one damaged token must not stop the others.
    private func readable(_ open: () throws(CryptoError) -> Secret?) throws(CryptoError) -> Secret? {
        do {
            return try open()
        } catch {
            guard error.isOfOneValue else { throw error }
            return nil
        }
    }
}

extension Grant {
    fileprivate func isSealed(withOneOf keys: Set<KeyID>) -> Bool {
        [refreshToken?.sealed.keyID, accessToken?.sealed.keyID].contains { $0.map(keys.contains) ?? false }
    }
}
