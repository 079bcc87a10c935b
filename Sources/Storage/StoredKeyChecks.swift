package import Crypto

/// Reads and writes the ``KeyChecks`` of a store, which are kept in its notes.
package struct StoredKeyChecks: Sendable {
    private static let note = "key_checks"
    /// The limits of the search for a token of each key, in a store that has no checks yet.
    private static let pageSize = 500
    private static let maximumPages = 4

    private let store: any GrantStore

    package init(_ store: any GrantStore) { self.store = store }

    /// Compares a ring with the keys that seal stored tokens.
    ///
    /// If the store has no checks yet, the ring's are written, unless the ring is foreign.
    package func fit(of ring: KeyRing) async throws -> KeyRingFit {
        while true {
            if let checks = try await stored() { return try checks.fit(of: ring) }
            let (checks, wrong) = try await derived(with: ring)
            let fit = wrong.isEmpty ? try checks.fit(of: ring) : .foreign(wrong)
            if case .foreign = fit { return fit }
            if try await store.replaceNote(Self.note, nil, with: checks.stored) { return fit }
        }
    }

    /// Compares a ring with the stored checks; `nil` if there are none yet.
    package func storedFit(of ring: KeyRing) async throws -> KeyRingFit? { try await stored()?.fit(of: ring) }

    /// Returns the keys that may seal stored tokens; empty if the store has no checks yet.
    package func keyIDs() async throws -> Set<KeyID> { try await stored()?.keyIDs ?? [] }

    /// Adds a key before it seals for the first time, if the ring still fits: of two rings that come to an empty
    /// database at the same time, only the first fits.
    package func add(_ id: KeyID, of ring: KeyRing) async throws {
        try await change(with: ring) { checks throws(SealError) in
            guard !checks.keyIDs.contains(id), try checks.fit(of: ring) == .fits else { return }
            try checks.add(id, of: ring)
        }
    }

    /// Removes keys that no longer seal a stored token, or that are lost.
    package func remove(_ ids: [KeyID], with ring: KeyRing) async throws {
        try await change(with: ring) { checks throws(SealError) in ids.forEach { checks.remove($0) } }
    }

    private func change(
        with ring: KeyRing,
        _ change: (inout KeyChecks) throws(SealError) -> Void
    ) async throws {
        while true {
            let former = try await store.note(Self.note)
            let list = try await stored()
            var checks: KeyChecks
            if let list { checks = list } else { checks = try await derived(with: ring).checks }
            try change(&checks)
            if checks == list { return }
            if try await store.replaceNote(Self.note, former, with: checks.stored) { return }
        }
    }

    private func stored() async throws -> KeyChecks? {
        guard let text = try await store.note(Self.note) else { return nil }
        guard let checks = KeyChecks(stored: text) else {
            throw StoreError(
                .corrupt,
                "The list of keys is damaged in the database. Stop the workers, delete the row \(Self.note) of the "
                    + "table meta with the database's own shell, and start again: the list is made from the stored "
                    + "tokens. No token is lost."
            )
        }
        return checks
    }

    /// Derives checks for a store that has none, from the keys that its tokens name; also returns the keys of the ring
    /// that fail to open their tokens.
    private func derived(with ring: KeyRing) async throws -> (checks: KeyChecks, wrong: [KeyID]) {
        var checks = KeyChecks()
        var unproven: Set<KeyID> = []
        for id in try await store.keysInUse().keys {
            if ring.keyIDs.contains(id) {
                try checks.add(id, of: ring)
                unproven.insert(id)
            } else {
                checks.addUnchecked(id)
            }
        }
        var refused: Set<KeyID> = []
        var cursor: GrantID?
        for _ in 0..<Self.maximumPages where !unproven.isEmpty {
            let page = try await store.grants(after: cursor, in: nil, atMost: Self.pageSize)
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
