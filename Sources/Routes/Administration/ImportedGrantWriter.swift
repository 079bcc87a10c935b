package import Base
internal import Crypto
package import Storage

/// Stores grants from outside: new ones and, if allowed, replacements of stored ones.
package struct ImportedGrantWriter: Sendable {
    /// The outcome for one grant.
    package enum Outcome: Equatable, Sendable {
        case stored
        case replaced
        /// The user already has a grant, which is unchanged. Its refresh token might be a successor of the input's.
        case kept
        /// The user ended the stored grant, replaced its refresh token, or disconnected before there was a grant, and the
        /// input does not have a newer one.
        case keptEnded
        /// The user was deleted, and the tombstone is still stored.
        case refused
    }

    /// The treatment of a user who already has a grant.
    package enum Existing: Sendable {
        case keep
        case replace
        /// Replaced, unless the stored grant is as new as the input, or newer.
        case replaceOlder
    }

    private static let maximumHistory = 1000

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

    /// Stores grants in their order.
    ///
    /// Of two grants of one user, the first counts as stored before the second.
    ///
    /// All new grants are stored in one transaction. Tokens are sealed before it, so that other writers do not wait. A
    /// grant that turns out to be stored already needs a second attempt. One that another process changes during that
    /// attempt needs a third.
    package func store(_ grants: [ImportedGrant]) async throws -> [Outcome] {
        var outcomes: [Outcome?] = Array(repeating: nil, count: grants.count)
        var open = grants.enumerated().map { (position, imported) -> PendingGrant in (position, imported, nil) }
        while !open.isEmpty {
            var changed: [PendingGrant] = []
            for (item, result) in zip(open, try await attempt(open)) {
                switch result {
                case .done(let outcome): outcomes[item.position] = outcome
                case .changed(let stored): changed.append((item.position, item.imported, stored))
                }
            }
            open = changed
        }
        return outcomes.compactMap(\.self)
    }

    /// A grant to store, and the user's stored grant as of the last read.
    private typealias PendingGrant = (position: Int, imported: ImportedGrant, stored: Grant?)

    private enum AttemptResult: Sendable {
        case done(Outcome)
        /// The stored grant differs from the expected one.
        ///
        /// Prepare again for this one.
        case changed(Grant?)
    }

    private enum Preparation: Sendable {
        case new(Grant, [GrantEvent])
        case replacement(GrantReplacement)
        case nothing(Outcome)
    }

    /// A grant from outside, and what is to be stored of it.
    private struct PreparedGrant: Sendable {
        var imported: ImportedGrant
        var content: Preparation
    }

    private func attempt(_ pending: [PendingGrant]) async throws -> [AttemptResult] {
        let now = time.now
        var prepared: [PreparedGrant] = []
        for item in pending {
            prepared.append(PreparedGrant(imported: item.imported, content: try await prepare(item, at: now)))
        }
        return try await results(of: prepared, at: now)
    }

    private func results(
        of prepared: [PreparedGrant],
        at now: Timestamp
    ) async throws -> [AttemptResult] {
        guard let store else { return prepared.map { _ in .done(.stored) } }
        let existing = existing
        let recordsDates = recordsDates
        let writes = !isDryRun
        return try await store.transact { transaction in
            try prepared.map { item in
                let userID = item.imported.userID
                if try transaction.user(userID)?.isDeleted == true { return .done(.refused) }
                let stored = try transaction.grant(ofUser: userID)
                func recordDate(of grant: Grant) throws {
                    guard recordsDates, let date = item.imported.obtainedAt else { return }
                    try transaction.recordDate(date, ofTokensImportedFor: grant.id, at: now)
                }
                switch (item.content, stored) {
                case (.nothing(let outcome), _):
                    return .done(outcome)
                case (.new(let grant, let events), nil):
                    // What names one user, as a backend's own request does, is newer than any disconnect.
                    if existing != .replace, try Self.wasDisconnected(since: item.imported, in: transaction) {
                        return .done(.keptEnded)
                    }
                    if writes {
                        try transaction.insert(grant)
                        for event in events { try transaction.record(event) }
                        try recordDate(of: grant)
                    }
                    return .done(.stored)
                case (.new, _?):
                    return existing == .keep ? .done(.kept) : .changed(stored)
                case (.replacement(let replacement), var grant?):
                    if let kept = try Self.outcome(ofFormerTokenIn: replacement.reconnection, for: grant, transaction) {
                        return .done(kept)
                    }
                    guard replacement.reconnection.isBased(on: grant) else { return .changed(stored) }
                    let events = replacement.apply(to: &grant, at: now)
                    if writes {
                        try transaction.update(grant)
                        for event in events { try transaction.record(event) }
                        try recordDate(of: grant)
                    }
                    return .done(.replaced)
                case (.replacement, nil):
                    return .changed(nil)
                }
            }
        }
    }

    /// `true` if a user without a grant has disconnected here since the input was obtained.
    private static func wasDisconnected(
        since imported: ImportedGrant,
        in transaction: any StoreTransaction
    ) throws -> Bool {
        guard let end = try transaction.disconnectTime(ofUserWithoutGrant: imported.userID) else { return false }
        guard let obtainedAt = imported.obtainedAt else { return true }
        return obtainedAt <= end
    }

    /// Returns the outcome of a record with a refresh token that the grant had before, or `nil` for any other.
    ///
    /// A client repeats a request whose answer was lost. Meanwhile a refresh can have rotated the token.
    private static func outcome(
        ofFormerTokenIn reconnection: Reconnection,
        for grant: Grant,
        _ transaction: any StoreTransaction
    ) throws -> Outcome? {
        guard reconnection.replacesRefreshToken else { return nil }
        let token = reconnection.incoming.refreshToken
        if try transaction.hasLeft(token, of: grant) { return .keptEnded }
        guard try transaction.hasSpent(token, of: grant) else { return nil }
        if grant.wasEndedByUser { return .keptEnded }
        // A grant that has ended loses nothing by another try.
        return grant.state.endsRefreshes ? nil : .kept
    }

    private func prepare(_ item: PendingGrant, at now: Timestamp) async throws -> Preparation {
        if let stored = item.stored {
            if existing == .replaceOlder, try await isAtLeastAsNew(stored, as: item.imported) {
                return .nothing(.kept)
            }
            let replacement = try replacement(of: stored, with: item.imported)
            return replacement.revivesEndedGrant ? .nothing(.keptEnded) : .replacement(replacement)
        }
        let (grant, events) = try newGrant(item.imported, at: now)
        return .new(grant, events)
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
    ) throws(CryptoError) -> (grant: Grant, events: [GrantEvent]) {
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
            incoming: incoming,
            dueAt: dueAt,
            at: now
        )
        if let recordedState = imported.recordedState { grant.restore(recordedState, in: &events, at: now) }
        return (grant, events)
    }

    private func replacement(of stored: Grant, with imported: ImportedGrant) throws(CryptoError) -> GrantReplacement {
        var incoming = try incomingTokens(of: imported, for: stored.id)
        let replacesRefreshToken = vault.isOther(
            refreshToken: imported.refreshToken,
            ofClient: imported.clientID,
            than: stored
        )
        let switchesAccount = stored.owner.isOtherAccount(than: incoming.owner)
        // The stored scopes of the same token are those of a later answer, or of a later consent.
        if !replacesRefreshToken, !switchesAccount, !stored.scope.isEmpty { incoming.scope = nil }
        let reconnection = Reconnection(
            stored: stored,
            incoming: incoming,
            replacesRefreshToken: replacesRefreshToken,
            switchesAccount: switchesAccount
        )
        return GrantReplacement(reconnection: reconnection, imported: imported, refreshesAtOnce: refreshesAtOnce)
    }

    private func incomingTokens(of imported: ImportedGrant, for id: GrantID) throws(CryptoError) -> IncomingTokens {
        var incoming = IncomingTokens(clientID: imported.clientID, owner: imported.owner, scope: imported.scope)
        if let token = imported.refreshToken {
            incoming.refreshToken = try vault.seal(
                refreshToken: token,
                for: id,
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
