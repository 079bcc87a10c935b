import Crypto
import Storage

/// Seals stored tokens again with the current key, a batch of grants at a time.
extension KeyRotation {
    /// The number of grants in a batch: few enough that no worker waits long to write.
    private static let batchSize = 100

    struct Batch {
        /// The last grant, or `nil` at the end.
        let last: GrantID?
        /// The number of tokens that are now sealed with the sealing key.
        var resealed = 0
        /// The users with a token that its key does not open.
        var unreadable: [String] = []
    }

    /// Reads the next grants and seals again those of their tokens that one of `keys` seals.
    ///
    /// Each token is read again in the transaction that seals it, because workers might write between the first read
    /// and that transaction.
    func nextBatch(after cursor: GrantID?, outdated keys: Set<KeyID>) async throws -> Batch {
        let page = try await store.grants(after: cursor, in: nil, atMost: Self.batchSize)
        let outdated = page.filter { $0.isSealed(withOneOf: keys) }.map(\.id)
        guard !outdated.isEmpty else { return Batch(last: page.last?.id) }
        return try await store.transact { transaction in
            var batch = Batch(last: page.last?.id)
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
        return [refreshToken?.sealed, accessToken].count { $0 != nil }
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
        [refreshToken?.sealed.keyID, accessToken?.sealed.keyID].compactMap(\.self).contains(where: keys.contains)
    }
}
