package import Base
package import Storage

extension ResultRecovery {
    /// Stores the tokens of codes, each in a transaction of its own.
    package mutating func store(
        _ list: [ExchangedTokens],
        into store: any Store,
        sealingWith vault: TokenVault,
        time: any TimeSource,
        random: any RandomSource
    ) async throws {
        // The newest first: older ones of the same connection are outdated then.
        for tokens in list.sorted(by: { $0.receivedAt > $1.receivedAt }) {
            let (id, connection, now) = (GrantID.random(from: random), ConnectionID.random(from: random), time.now)
            do {
                let isCurrent = try await store.transact { transaction in
                    try tokens.store(in: transaction, newID: id, newConnection: connection, sealingWith: vault, at: now)
                }
                if isCurrent { stored += 1 } else { outdated += 1 }
            } catch let error as StoreError where error.code == .conflict {
                // One user's data must not keep all others from their refreshes.
                contradicting += 1
            }
        }
    }
}

extension ExchangedTokens {
    /// Stores the tokens of a former process as a grant of their user.
    ///
    /// Returns `false` if they no longer count: the user was deleted, or has connected or disconnected the account since.
    /// Storing them twice has no further effect.
    fileprivate func store(
        in transaction: any StoreTransaction,
        newID: GrantID,
        newConnection: ConnectionID,
        sealingWith vault: TokenVault,
        at now: Timestamp
    ) throws -> Bool {
        if try transaction.user(userID)?.isDeleted ?? false { return false }
        var stored: Grant?
        var connection = newConnection
        let grants = try transaction.grants(ofUser: userID)
        do throws(ConnectionTargetError) {
            // The code is spent: more connections than the limit are better than a lost refresh token.
            switch try target.resolve(among: grants, account: owner, limit: .max) {
            case .stored(let grant): stored = grant
            case .missing(let id): connection = id ?? newConnection
            }
        } catch {
            return false
        }
        if target.keepsAccount, let stored, stored.owner.isOtherAccount(than: owner) { return false }
        if try newerConnection(than: stored, in: transaction) != nil { return false }
        let id = stored?.id ?? newID
        let incoming = try sealed(for: id, with: vault)
        var reconnection: Reconnection?
        if let stored {
            if stored.holds(incoming.refreshToken) { return true }
            if try isOutdated(by: stored, in: transaction) { return false }
            reconnection = Reconnection(
                stored: stored,
                incoming: incoming,
                replacesRefreshToken: true,
                discardsStored: stored.owner.isOtherAccount(than: owner) || !stored.canKeepTokens
            )
        }
        let new = NewConnection(id: id, userID: userID, connection: connection)
        _ = try transaction.connect(incoming, as: new, changing: stored, by: reconnection, at: now)
        return true
    }
}
