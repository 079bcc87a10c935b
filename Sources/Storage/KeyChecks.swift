internal import Base
package import Crypto

/// A known value, sealed with each key that stored tokens need: a ring that opens all of them is the right one.
///
/// That includes the keys that tokens are bound to, although these seal nothing else.
struct KeyChecks: Hashable, Sendable {
    private static let knownValue = Secret("refresh-worker key check")
    private static let context = SealContext(owner: 0 as Int64, column: "key_check")

    /// The sealed value of each key, which is `nil` for a key that the ring lacked when this list was made.
    private var values: [KeyID: SealedSecret?] = [:]

    init() {}

    var keyIDs: Set<KeyID> { Set(values.keys) }

    mutating func add(_ id: KeyID, of ring: KeyRing) throws(CryptoError) {
        values[id] = try ring.seal(Self.knownValue, for: Self.context, with: id)
    }

    mutating func addUnchecked(_ id: KeyID) {
        if !values.keys.contains(id) { values.updateValue(nil, forKey: id) }
    }

    mutating func remove(_ id: KeyID) { values.removeValue(forKey: id) }

    /// Compares a ring with the list.
    func fit(of ring: KeyRing) throws(CryptoError) -> KeyRingFit {
        let ringKeys = Set(ring.keyIDs)
        var opened = 0
        var wrong: [KeyID] = []
        for (id, value) in values where ringKeys.contains(id) {
            do {
                if let value { _ = try ring.open(value, for: Self.context) }
                opened += 1
            } catch {
                guard case .damaged = error else { throw error }
                wrong.append(id)
            }
        }
        let missing = keyIDs.subtracting(ringKeys).sorted()
        if !wrong.isEmpty || (opened == 0 && !missing.isEmpty) { return .foreign((wrong + missing).sorted()) }
        return missing.isEmpty ? .fits : .lacks(missing)
    }
}

/// The fit of a ring and a database.
package enum KeyRingFit: Hashable, Sendable {
    case fits
    /// The ring opens some values, and these keys are missing.
    case lacks([KeyID])
    /// The ring opens none, or has different bits under the id of a key that seals stored tokens.
    case foreign([KeyID])

    package var keyIDs: [KeyID] {
        switch self {
        case .fits: []
        case .lacks(let ids), .foreign(let ids): ids
        }
    }
}

/// The list as one line of text: `id=value id=value id`, with the values in hexadecimal digits.
extension KeyChecks {
    init?(stored: String) {
        for entry in stored.split(separator: " ") {
            let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let id = KeyID(String(parts[0])) else { return nil }
            guard parts.count == 2 else {
                values.updateValue(nil, forKey: id)
                continue
            }
            do {
                guard let bytes = Hexadecimal.decode(parts[1]) else { return nil }
                let value = try SealedSecret(bytes: bytes)
                guard value.keyID == id else { return nil }
                values[id] = value
            } catch {
                return nil
            }
        }
    }

    var stored: String {
        keyIDs.sorted().map { id in (values[id] ?? nil).map { "\(id)=\(Hexadecimal.encode($0.bytes))" } ?? "\(id)" }
            .joined(separator: " ")
    }
}

/// The ``KeyChecks`` of a store, which are kept in its notes.
extension Store {
    private var keyChecksNote: String { "key_checks" }

    /// Compares a ring with the keys that stored tokens need.
    ///
    /// If the store has no checks yet, the ring's are written, unless the ring is foreign.
    package func fit(of ring: KeyRing) async throws -> KeyRingFit {
        while true {
            if let checks = try await keyChecks() { return try checks.fit(of: ring) }
            let (checks, wrong) = try await derivedKeyChecks(with: ring)
            let fit = wrong.isEmpty ? try checks.fit(of: ring) : .foreign(wrong)
            if case .foreign = fit { return fit }
            if try await replaceNote(keyChecksNote, from: nil, with: checks.stored) { return fit }
        }
    }

    /// Compares a ring with the stored checks, and returns `nil` if there are none yet.
    package func recordedFit(of ring: KeyRing) async throws -> KeyRingFit? { try await keyChecks()?.fit(of: ring) }

    /// Returns the keys that stored tokens can need, or empty if the store has no checks yet.
    package func recordedKeyIDs() async throws -> Set<KeyID> { try await keyChecks()?.keyIDs ?? [] }

    /// Records a key before it seals or binds for the first time.
    ///
    /// Nothing is recorded if the ring does not fit. Example: two rings come to an empty database at the same time, and
    /// only the first fits.
    ///
    /// - Returns: `true` if the key is recorded, by this call or an earlier one.
    @discardableResult
    package func recordKey(_ id: KeyID, of ring: KeyRing) async throws -> Bool {
        let checks = try await changeKeyChecks(with: ring) { checks throws(CryptoError) in
            guard !checks.keyIDs.contains(id), try checks.fit(of: ring) == .fits else { return }
            try checks.add(id, of: ring)
        }
        return checks.keyIDs.contains(id)
    }

    /// Records a key before the first token is bound to it, so that no ring that lacks it is taken for complete.
    ///
    /// Throws if it cannot be recorded: then no token can be bound to it.
    package func recordBindingKey(_ id: KeyID, of ring: ReloadableKeyRing) async throws {
        guard try await recordKey(id, of: ring.current) else {
            throw StoreError(
                .refused,
                "the binding key \(id) could not be recorded: \(ring.name) lacks a key of other workers"
            )
        }
    }

    /// Removes keys that no stored token needs any more, or that are lost.
    package func removeRecordedKeys(_ ids: [KeyID], with ring: KeyRing) async throws {
        _ = try await changeKeyChecks(with: ring) { checks throws(CryptoError) in ids.forEach { checks.remove($0) } }
    }

    /// Changes the checks, and returns them as they are stored then.
    private func changeKeyChecks(
        with ring: KeyRing,
        _ change: (inout KeyChecks) throws(CryptoError) -> Void
    ) async throws -> KeyChecks {
        while true {
            let former = try await note(keyChecksNote)
            let list = try await keyChecks()
            var checks: KeyChecks
            if let list { checks = list } else { checks = try await derivedKeyChecks(with: ring).checks }
            try change(&checks)
            if checks == list { return checks }
            if try await replaceNote(keyChecksNote, from: former, with: checks.stored) { return checks }
        }
    }

    private func keyChecks() async throws -> KeyChecks? {
        guard let text = try await note(keyChecksNote) else { return nil }
        guard let checks = KeyChecks(stored: text) else {
            throw StoreError(
                .corrupt,
                "The list of keys is damaged in the database. Stop the workers, delete the row \(keyChecksNote) of the "
                    + "table meta with the database's own shell, and start again: the list is made from the stored "
                    + "tokens. No token is lost."
            )
        }
        return checks
    }

    /// Derives checks for a store that has none, from the keys that its tokens name, and also returns the keys of the
    /// ring that fail to open their tokens.
    private func derivedKeyChecks(with ring: KeyRing) async throws -> (checks: KeyChecks, wrong: [KeyID]) {
        // The limits of the search for a token of each key.
        let (pageSize, maximumPages) = (500, 4)
        var checks = KeyChecks()
        var unproven: Set<KeyID> = []
        for id in try await keysInUse().keys {
            if ring.keyIDs.contains(id) {
                try checks.add(id, of: ring)
                // Only a sealed token proves its key.
                if ring.keys.contains(where: { $0.id == id && !$0.isBinding }) { unproven.insert(id) }
            } else {
                checks.addUnchecked(id)
            }
        }
        var refused: Set<KeyID> = []
        var cursor: GrantID?
        for _ in 0..<maximumPages where !unproven.isEmpty {
            let page = try await grants(after: cursor, in: nil, atMost: pageSize)
            guard let last = page.last?.id else { break }
            cursor = last
            for (sealed, context) in page.flatMap(\.sealedTokens) where unproven.contains(sealed.keyID) {
                do {
                    _ = try ring.open(sealed, for: context)
                    unproven.remove(sealed.keyID)
                } catch {
                    guard case .damaged = error else { throw error }
                    refused.insert(sealed.keyID)
                }
            }
        }
        return (checks, unproven.intersection(refused).sorted())
    }
}

extension Grant {
    fileprivate var sealedTokens: [(SealedSecret, SealContext)] {
        [
            refreshToken.map { ($0.sealed, .refreshToken(of: id)) },
            accessToken.map { ($0.sealed, .accessToken(of: id)) },
        ].compactMap(\.self)
    }
}
