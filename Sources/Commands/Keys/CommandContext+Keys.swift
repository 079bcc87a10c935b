import Base
import Crypto
private import Glibc
import Storage
import Telemetry
package import Worker

/// `keys generate`, `keys list` and `keys retire`.
extension CommandContext {
    /// Makes a key ring, unless the database holds tokens that it could not open.
    ///
    /// After a final loss, `isLost` makes the ring nevertheless.
    package func generateKeys(isLost: Bool = false, isJSON: Bool = false) async throws -> ExitCode {
        let path = configuration.keyFile
        if !isLost, !inputs.files.exists(path) { try await refuseIfTokensAreSealed() }
        let id: KeyID
        do {
            id = try await BlockingCallQueue.files.run { try KeyRingFile.generate(path: path) }
        } catch let error as KeyRingFileError {
            throw CommandFailure(notGenerated: error)
        }
        guard !isJSON else {
            var line = JSONLine()
            line.field("file", path)
            line.field("key", id.description)
            Output.standard.line(line.bytes)
            return .success
        }
        Output.standard.line(
            """
            created the key ring \(path) with one key, \(id)
            Back this file up now, in a safe place apart from copies of the database: without it no stored token can \
            be opened, and every user must sign in again.
            """
        )
        return .success
    }

    private func refuseIfTokensAreSealed() async throws {
        let keysInUse: [KeyID: Int]
        do {
            guard let store = try await openStoreIfThere(for: .reading) else { return }
            keysInUse = try await Self.using(store) { try await store.keysInUse() }
        } catch {
            // A ring can be made before the server of the database is up. The worker checks it at its start.
            diagnostics.warning(
                "the database cannot be read, so it is unknown if its tokens are sealed with another key ring",
                ["database": "\(configuration.database)", "error": "\(CommandFailure(error).message)"]
            )
            return
        }
        guard !keysInUse.isEmpty else { return }
        throw CommandFailure(sealed: keysInUse, in: configuration.database, without: configuration.keyFile)
    }

    package func listKeys(asJSON isJSON: Bool = false) async throws -> ExitCode {
        let keys = KeyRingSummary(try openVault().ring.current)
        guard let store = try await openStoreIfThere(for: .reading) else {
            let listing = KeyListing(keys: keys, keysInUse: nil)
            listing.lines(asJSON: isJSON).forEach { Output.standard.line($0) }
            Output.error.line("there is no database \(configuration.database) yet, so nothing is sealed")
            return .success
        }
        let listing = try await Self.using(store) {
            KeyListing(keys: keys, keysInUse: try await store.keysInUse())
        }
        listing.lines(asJSON: isJSON).forEach { Output.standard.line($0) }
        listing.warnings.forEach { Output.error.line($0) }
        return .success
    }

    package func retireKey(_ text: String, isLost: Bool = false, isJSON: Bool = false) async throws -> ExitCode {
        guard let id = KeyID(text) else {
            throw CommandFailure(
                .badData,
                "\(DisplayedText(text)) is not a key id: refresh-worker keys list shows the eight digits of each"
            )
        }
        let vault = try openVault()
        let ring = vault.ring.current
        let path = configuration.keyFile
        let outcome = try await withExistingStore(for: .changing) { store -> KeyRetirement.Outcome in
            let keyChecks = StoredKeyChecks(store)
            if case .foreign = try await keyChecks.fit(of: ring), !isLost { throw CommandFailure(foreignRing: path) }
            let keysInUse = try await store.keysInUse()
            if isLost { return try await forgetLostKey(id, ring: ring, keyChecks: keyChecks, keysInUse: keysInUse) }
            let keys = KeyRingSummary(ring)
            let refusal = KeyRetirement.refusal(
                of: id,
                keys: keys,
                keysInUse: keysInUse,
                workers: try await store.liveWorkers()
            )
            if let refusal { throw refusal }
            guard let entry = keys.entries.first(where: { $0.id == id }), let end = entry.removableAt else {
                let now = time.now
                try await BlockingCallQueue.files.run { try KeyRingFile.retire(id, at: now, path: path) }
                return .retired(removableAt: now + .seconds(86_400))
            }
            guard end <= time.now else {
                throw CommandFailure(
                    .leftForLater,
                    "key \(id) is retired already, and stays until \(end.iso8601Seconds): try again then"
                )
            }
            try await Self.remove(id, from: path, ring: ring, keyChecks: keyChecks)
            return .removed
        }
        Output.standard.line(isJSON ? outcome.json(of: id, in: path) : outcome.text(of: id, in: path))
        return .success
    }

    /// Removes an unneeded key from the list in the database, then from the file.
    ///
    /// In this order, a worker that reads the file in between finds more keys than it needs, not fewer.
    static func remove(_ id: KeyID, from path: String, ring: KeyRing, keyChecks: StoredKeyChecks) async throws {
        try await keyChecks.remove([id], with: ring)
        try await BlockingCallQueue.files.run { try KeyRingFile.remove(id, path: path) }
    }

    /// Lets the workers continue without a lost key.
    private func forgetLostKey(
        _ id: KeyID,
        ring: KeyRing,
        keyChecks: StoredKeyChecks,
        keysInUse: [KeyID: Int]
    ) async throws -> KeyRetirement.Outcome {
        guard !ring.keyIDs.contains(id) else {
            throw CommandFailure(.badData, "key \(id) is not lost: the key ring contains it")
        }
        let recorded = try await keyChecks.keyIDs()
        guard recorded.contains(id) || keysInUse[id] != nil else {
            throw CommandFailure(.badData, "no stored token needs key \(id)")
        }
        try await keyChecks.remove([id], with: ring)
        return .givenUp(tokens: keysInUse[id] ?? 0)
    }
}

extension CommandFailure {
    fileprivate init(foreignRing path: String) {
        self.init(
            .configuration,
            "the key ring \(path) is not the one that sealed the tokens of this database: put the right one in its place"
        )
    }

    /// Reports that a new ring would open none of the stored tokens.
    fileprivate init(sealed keysInUse: [KeyID: Int], in database: DatabaseLocation, without path: String) {
        let tokens = KeyListing.tokens(keysInUse.values.reduce(0, +))
        let keys = keysInUse.keys.sorted().map(\.description).joined(separator: ", ")
        self.init(
            .cannotCreate,
            """
            \(database) holds \(tokens) sealed with key \(keys), which a new key ring cannot open: put a copy of the \
            former one in \(path). If no copy exists, docs/runbook/key-ring-lost.md says what to do
            """
        )
    }

    /// Reports a key ring that was not created: the file could not be created, unless the disk failed.
    fileprivate init(notGenerated error: KeyRingFileError) {
        switch error.reason {
        case .folderMissing:
            let folder = FileStatus.folder(of: error.path)
            self.init(.cannotCreate, "\(error): run: mkdir -p \(folder)")
        case .system(let failure) where failure.code == ENOSPC || failure.code == EDQUOT || failure.code == EIO:
            self.init(.inputOutput, "\(error)")
        case .sealing:
            self.init(.internalFailure, "\(error)")
        default:
            self.init(.cannotCreate, "\(error)")
        }
    }
}
