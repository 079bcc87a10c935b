import Base
import Crypto
import Storage

extension Command {
    /// `keys retire ID`: retires a key, and a day later removes it. A binding key is only retired.
    static let retireKey = Command(
        words: ["keys", "retire"],
        summary: "retire an old key, and remove it a day later",
        discussion: """
            The key opens tokens for one more day but does not seal, because results that it sealed might still wait to \
            be stored. After that day the same command, or keys rotate, removes it from the file. The command exits \
            with 75 while a stored token is sealed with the key or bound to it, or a live worker seals with it, and with \
            65 if the ring does not contain it. Backups of the database from before might still need it.

            A binding key is not removed: no token is bound to it any more, and its line stays in the file.

            Workers do not run without a key that stored tokens need. If such a key is lost permanently, --lost lets \
            them run: its tokens stay useless, and their users must sign in again.
            """,
        operands: [.keyID("the key's id, as keys list prints it")],
        options: [.toggle("lost", "give up a key that no copy of the ring holds"), .jsonObject],
        settings: [.config, .database, .keyFile, .keyCommand, .keyWrapCommand, .logLevel],
        examples: ["refresh-worker keys retire 7f3a91c2": "after keys rotate has finished"],
        exitCodes: .ofDatabase(.badData)
    ) { arguments, context, output in
        let text = arguments.operand
        let isLost = arguments.has("lost")
        guard let id = KeyID(text) else {
            throw CommandError(
                .badData,
                "\(DisplayedText(text)) is not a key id: refresh-worker keys list shows the eight digits of each"
            )
        }
        let vault = try context.openVault()
        let ring = vault.ring.current
        let path = context.configuration.keyFile
        let wrapping = context.keyWrapping
        let use: DatabaseAccess = isLost ? .givingUpKeys : .changing
        let outcome = try await context.withExistingStore(for: use) { store -> KeyRetirement in
            if case .foreign = try await store.fit(of: ring), !isLost { throw CommandError(foreignRing: path) }
            let keysInUse = try await store.keysInUse()
            if isLost { return try await forgetLostKey(id, ring: ring, store: store, keysInUse: keysInUse) }
            let keys = KeyRingSummary(ring)
            let workers = try await store.liveWorkers()
            if let refusal = CommandError(retiring: id, of: keys, keysInUse: keysInUse, workers: workers) {
                throw refusal
            }
            if keys.role(of: id) == .binds, context.configuration.bindsTokens { throw CommandError(binding: id) }
            let now = context.time.now
            guard keys.role(of: id) == .retired else {
                try await BlockingCallQueue.files.run {
                    try KeyRingFile.retire(id, at: now, path: path, wrapping: wrapping)
                }
                return .retired(removableAt: keys.isBinding(id) ? nil : now + KeyRingSummary.Entry.retirement)
            }
            guard let end = keys.removableAt(id) else { throw CommandError(keepingRetired: id) }
            guard end <= now else {
                throw CommandError(
                    .leftForLater,
                    "key \(id) is retired already, and stays until \(end.iso8601Seconds): try again then"
                )
            }
            try await ring.remove(id, from: path, wrapping: wrapping, in: store)
            return .removed
        }
        output.answer(outcome.text(of: id, in: path)) { outcome.write(id, in: path, to: &$0) }
        return .success
    }

    /// Lets the workers continue without a lost key.
    private static func forgetLostKey(
        _ id: KeyID,
        ring: KeyRing,
        store: any Store,
        keysInUse: [KeyID: Int]
    ) async throws -> KeyRetirement {
        guard !ring.keyIDs.contains(id) else {
            throw CommandError(.badData, "key \(id) is not lost: the key ring contains it")
        }
        let recorded = try await store.recordedKeyIDs()
        guard recorded.contains(id) || keysInUse[id] != nil else {
            throw CommandError(.badData, "no stored token needs key \(id)")
        }
        try await store.removeRecordedKeys([id], with: ring)
        return .givenUp(tokens: keysInUse[id] ?? 0)
    }
}

extension CommandError {
    fileprivate init(foreignRing path: String) {
        self.init(
            .configuration,
            "the key ring \(path) is not the one that sealed the tokens of this database: put the right one in its place"
        )
    }

    /// Reports a binding key that is retired already.
    fileprivate init(keepingRetired id: KeyID) {
        self.init(
            .leftForLater,
            "key \(id) is retired already, and a binding key stays in the ring: its line does no harm"
        )
    }

    fileprivate init(binding id: KeyID) {
        self.init(
            .leftForLater,
            """
            refresh tokens of new codes are bound to key \(id): switch --bind-tokens off, or add another key first: run: \
            refresh-worker keys add-binding
            """
        )
    }

    /// Creates the reason why a key must stay, or `nil` if it is not needed.
    init?(retiring id: KeyID, of keys: KeyRingSummary, keysInUse: [KeyID: Int], workers: [WorkerReport]) {
        guard let role = keys.role(of: id) else {
            self.init(.badData, "the ring has no key \(id): refresh-worker keys list shows its keys")
            return
        }
        guard role != .seals else {
            let advice = "replace it first: run: refresh-worker keys rotate"
            self.init(.leftForLater, "key \(id) seals new tokens: \(advice)")
            return
        }
        if let count = keysInUse[id], count > 0, keys.isBinding(id) {
            self.init(
                .leftForLater,
                """
                key \(id) binds \(count.counted("token")), for as long as they are stored: it is needed until everyone who \
                is bound has signed in again
                """
            )
            return
        }
        if let count = keysInUse[id], count > 0 {
            self.init(
                .leftForLater,
                "key \(id) still seals \(count.counted("token")): run: refresh-worker keys rotate"
            )
            return
        }
        let sealers = workers.filter { $0.sealingKeyID == id }.map(\.id)
        if !sealers.isEmpty {
            self.init(
                .leftForLater,
                """
                key \(id) is still the sealing key of worker \(sealers.joined(separator: ", ")): restart it if \
                LoadCredential passes its key ring, otherwise try again in ten seconds
                """
            )
            return
        }
        return nil
    }
}
