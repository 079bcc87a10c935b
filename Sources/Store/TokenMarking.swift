/// Marks refresh tokens that were stored before there were marks, so that a security event can name them too.
package enum TokenMarking {
    /// What was found.
    package struct Outcome: Hashable, Sendable {
        package var marked = 0
        /// Tokens that no key of the ring opens: they stay without marks.
        package var unreadable = 0

        package init() {}
    }

    /// Grants in one batch: few enough that no worker waits long for its turn to write.
    private static let batchSize = 100

    /// Marks them all, in batches, until there are no more or the task is cancelled; nothing to do is quickly found out.
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
                    // Another may have stored other tokens since the look.
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
    /// The grant's refresh token with its marks, or `nil` where it cannot be opened: one such must not hold up all others.
    fileprivate func marked(_ grant: Grant) -> Grant.RefreshToken? {
        guard var token = grant.refreshToken else { return nil }
        guard case .success(let secret?) = Result(catching: { try openRefreshToken(of: grant) }) else { return nil }
        token.marks = TokenMarks(of: secret)
        return token
    }
}
