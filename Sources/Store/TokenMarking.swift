/// Adds marks to refresh tokens that were stored before marks existed, so that security events can name them too.
package enum TokenMarking {
    /// The numbers of tokens by result.
    package struct Outcome: Hashable, Sendable {
        package var marked = 0
        /// Tokens that no key of the ring opens: they stay without marks.
        package var unreadable = 0

        package init() {}
    }

    /// The number of grants in one batch: small, so that other writers do not wait long.
    private static let batchSize = 100

    /// Marks all tokens in batches, until none is left or the task is cancelled; finding none is fast.
    package static func markTokens(store: any AccountStore, vault: TokenVault) async throws -> Outcome {
        var outcome = Outcome()
        var cursor: GrantID?
        while !Task.isCancelled {
            let page = try await store.grantsWithoutMarks(after: cursor, atMost: batchSize)
            guard let last = page.last?.id else { break }
            cursor = last
            let marked = page.compactMap { grant in vault.marked(grant).map { (id: grant.id, token: $0) } }
            outcome.unreadable += page.count - marked.count
            outcome.marked += try await store.transact { transaction in
                var count = 0
                for (id, token) in marked {
                    // Another process may have stored other tokens since the read.
                    guard var grant = try transaction.grant(id) else { continue }
                    let former = grant
                    grant.mark(token)
                    guard grant != former else { continue }
                    try transaction.update(grant)
                    count += 1
                }
                return count
            }
        }
        return outcome
    }
}

extension TokenVault {
    /// Returns the grant's refresh token with its marks; `nil` if it cannot be opened, so that it does not hold up the
    /// others.
    fileprivate func marked(_ grant: Grant) -> Grant.RefreshToken? {
        guard var token = grant.refreshToken else { return nil }
        guard case .success(let secret?) = Result(catching: { try openRefreshToken(of: grant) }) else { return nil }
        token.marks = TokenMarks(of: secret)
        return token
    }
}
