package import Base
internal import Crypto
package import Storage

/// Stores grants from outside: new ones and, if allowed, replacements of stored ones.
package struct ImportedGrantWriter: Sendable {
    /// The outcome for one grant.
    package enum Outcome: Equatable, Sendable {
        case stored
        case replaced
        /// The connection already has a grant, which is unchanged. Its refresh token might be a successor of the input's.
        case kept
        /// The user ended the stored grant, replaced its refresh token, or disconnected before there was a grant, and
        /// the input does not have a newer one.
        case keptEnded
        /// The user was deleted, and the tombstone is still stored.
        case refused
        /// The account is another connection of the user, this one.
        case accountConnected(ConnectionID)
    }

    /// The treatment of a connection that already has a grant.
    package enum Existing: Sendable {
        case keep
        case replace
        /// Replaced, unless the stored grant is as new as the input, or newer.
        case replaceOlder
    }

    private static let maximumHistory = 1000
    /// The limit of replacements in one transaction: each takes round trips, and other writers wait.
    private static let maximumReplacements = 200

    /// `nil` for a dry run without a database.
    private let store: (any Store)?
    private let vault: TokenVault
    private let time: any TimeSource
    private let random: any RandomSource
    package let existing: Existing
    /// `true` for a first refresh at once instead of when the access token is due.
    private let refreshesAtOnce: Bool
    /// `true` to record the dates of the imported tokens, for a later import that replaces older ones.
    private let recordsDates: Bool
    /// `true` for a dry run: everything is decided and nothing is written.
    package var isDryRun: Bool

    package init(
        store: (any Store)?,
        vault: TokenVault,
        time: any TimeSource,
        random: any RandomSource,
        existing: Existing,
        refreshesAtOnce: Bool = false,
        recordsDates: Bool = false,
        isDryRun: Bool = false
    ) {
        self.store = store
        self.vault = vault
        self.time = time
        self.random = random
        self.existing = existing
        self.refreshesAtOnce = refreshesAtOnce
        self.recordsDates = recordsDates
        self.isDryRun = isDryRun
    }

    /// Refuses a record whose refresh token is bound to a key that the ring lacks: without that key it is useless.
    package func check(_ imported: ImportedGrant) throws(InputError) {
        guard let id = imported.bindingKeyID else { return }
        do throws(CryptoError) {
            _ = try vault.ring.bindingKey(id)
        } catch {
            throw InputError(
                "the refresh token is bound to key \(id), which the key ring lacks: add the key's line from the key ring of "
                    + "its origin, or let the user sign in again"
            )
        }
    }

    /// New grants with sealed tokens, which nothing is known to contradict yet.
    package struct PreparedGrants: Sendable {
        fileprivate let items: [ImportedGrantBatch.Item]
        fileprivate let preparedAt: Timestamp
    }

    /// Seals the tokens of grants, before the transaction, so that other writers do not wait for it.
    package func prepare(_ grants: [ImportedGrant]) throws -> PreparedGrants {
        let now = time.now
        let items = try grants.map { imported in
            ImportedGrantBatch.Item(imported: imported, content: .new(try newGrant(imported, at: now)))
        }
        return PreparedGrants(items: items, preparedAt: now)
    }

    /// Records the keys of bound tokens before they are stored. If one cannot be recorded, nothing is stored.
    private func recordBindingKeys(of prepared: PreparedGrants) async throws {
        guard let store, !isDryRun else { return }
        for id in Set(prepared.items.compactMap(\.imported.bindingKeyID)) {
            try await store.recordBindingKey(id, of: vault.ring)
        }
    }

    /// Prepares grants and stores them.
    package func store(_ grants: [ImportedGrant]) async throws -> [Outcome] {
        try await store(prepared: try prepare(grants))
    }

    /// Stores prepared grants in their order.
    ///
    /// Of two grants of one connection, the first counts as stored before the second.
    ///
    /// All new grants are stored in one transaction. A grant that turns out to be stored already needs a second
    /// attempt. One that another process changes during that attempt needs a third. These are stored in smaller parts.
    package func store(prepared: PreparedGrants) async throws -> [Outcome] {
        try await recordBindingKeys(of: prepared)
        var outcomes: [Outcome?] = Array(repeating: nil, count: prepared.items.count)
        var changed: [PendingGrant] = []
        func take(_ decisions: [ImportedGrantBatch.Decision], about positions: some Sequence<Int>) {
            for (position, decision) in zip(positions, decisions) {
                switch decision {
                case .done(let outcome): outcomes[position] = outcome
                case .changed(let stored):
                    let imported = prepared.items[position].imported
                    changed.append(PendingGrant(position: position, imported: imported, stored: stored))
                }
            }
        }
        take(try await storeAtOnce(prepared.items, at: prepared.preparedAt), about: prepared.items.indices)
        while !changed.isEmpty {
            var rest = changed[...]
            changed = []
            while !rest.isEmpty {
                let part = rest.prefix(Self.maximumReplacements)
                rest = rest.dropFirst(part.count)
                let now = time.now
                var items: [ImportedGrantBatch.Item] = []
                for item in part {
                    let content = try await content(of: item, at: now)
                    items.append(ImportedGrantBatch.Item(imported: item.imported, content: content))
                }
                take(try await storeAtOnce(items, at: now), about: part.map(\.position))
            }
        }
        return outcomes.compactMap(\.self)
    }

    /// A grant to store, and the stored grant of its connection as of the last read.
    private struct PendingGrant {
        let position: Int
        let imported: ImportedGrant
        let stored: Grant?
    }

    /// Stores items in one transaction, except those whose stored grant has changed. A dry run only decides.
    private func storeAtOnce(
        _ items: [ImportedGrantBatch.Item],
        at now: Timestamp
    ) async throws -> [ImportedGrantBatch.Decision] {
        guard let store, !items.isEmpty else { return items.map { _ in .done(.stored) } }
        let batch = ImportedGrantBatch(
            items: items,
            existing: existing,
            recordsDates: recordsDates,
            writes: !isDryRun,
            now: now
        )
        return try await store.transact { try batch.store(in: $0) }
    }

    private func content(of item: PendingGrant, at now: Timestamp) async throws -> ImportedGrantBatch.Content {
        if let stored = item.stored {
            if existing == .replaceOlder, try await isAtLeastAsNew(stored, as: item.imported) {
                return .nothing(.kept)
            }
            let replacement = try replacement(of: stored, with: item.imported)
            return replacement.revivesEndedGrant ? .nothing(.keptEnded) : .replacement(replacement)
        }
        return .new(try newGrant(item.imported, at: now))
    }

    /// `true` if the stored grant is at least as new as the input.
    ///
    /// Input without a date counts as older.
    ///
    /// The age of the stored grant counts from the last time its refresh token was received or rotated, or the grant
    /// was ended. Tokens of an import are as old as its input says. An older grant must neither replace a newer token
    /// nor bring back a grant that has ended. A refresh alone does not count.
    private func isAtLeastAsNew(_ stored: Grant, as imported: ImportedGrant) async throws -> Bool {
        guard let obtainedAt = imported.obtainedAt else { return true }
        let history = try await store?.events(of: stored.id, atMost: Self.maximumHistory) ?? []
        let last = history.first { $0.kind == .connected || $0.kind == .rotated || $0.to.endsRefreshes }
        // If a long history does not have such an event, the event is older than all that were read.
        guard let changedAt = (last ?? history.last)?.at else { return stored.createdAt >= obtainedAt }
        if let last, last.kind == .connected,
            let date = try await store?.dateOfTokens(importedFor: stored.id, at: last.at)
        {
            return date >= obtainedAt
        }
        return changedAt >= obtainedAt
    }

    private func newGrant(
        _ imported: ImportedGrant,
        at now: Timestamp
    ) throws(CryptoError) -> NewGrant {
        let id = GrantID.random(from: random)
        var incoming = try incomingTokens(of: imported, for: id)
        if imported.recordedState?.deletesTokens == true {
            incoming.refreshToken = nil
            incoming.accessToken = nil
        }
        let dueAt = imported.firstDueTime(
            incoming.accessToken,
            hasRefreshToken: incoming.refreshToken != nil,
            id: id,
            refreshesAtOnce: refreshesAtOnce,
            at: now
        )
        var (grant, events) = Grant.connected(
            id: id,
            userID: imported.userID,
            connection: imported.connection,
            incoming: incoming,
            dueAt: dueAt,
            at: now
        )
        if let recordedState = imported.recordedState { grant.restore(recordedState, in: &events, at: now) }
        return NewGrant(grant: grant, events: events)
    }

    private func replacement(of stored: Grant, with imported: ImportedGrant) throws(CryptoError) -> GrantReplacement {
        var incoming = try incomingTokens(of: imported, for: stored.id)
        let replacesRefreshToken = vault.isOther(
            refreshToken: imported.refreshToken,
            ofClient: imported.clientID,
            boundTo: imported.bindingKeyID,
            than: stored
        )
        let switchesAccount = stored.owner.isOtherAccount(than: incoming.owner)
        // The stored scopes of the same token are those of a later answer, or of a later consent.
        if !replacesRefreshToken, !switchesAccount, !stored.scope.isEmpty { incoming.scope = nil }
        let reconnection = Reconnection(
            stored: stored,
            incoming: incoming,
            replacesRefreshToken: replacesRefreshToken,
            discardsStored: switchesAccount
        )
        return GrantReplacement(reconnection: reconnection, imported: imported, refreshesAtOnce: refreshesAtOnce)
    }

    private func incomingTokens(of imported: ImportedGrant, for id: GrantID) throws(CryptoError) -> IncomingTokens {
        var incoming = IncomingTokens(clientID: imported.clientID, owner: imported.owner, scope: imported.scope)
        incoming.labels = imported.labels
        if let token = imported.refreshToken {
            incoming.refreshToken = try vault.seal(
                refreshToken: token,
                for: id,
                boundTo: imported.bindingKeyID,
                expiresAt: imported.refreshTokenExpiresAt
            )
        }
        if let token = imported.accessToken {
            incoming.accessToken = Grant.AccessToken(
                sealed: try vault.seal(accessToken: token.secret, for: id),
                obtainedAt: token.obtainedAt,
                expiresAt: token.expiresAt,
                type: token.type
            )
        }
        return incoming
    }
}
