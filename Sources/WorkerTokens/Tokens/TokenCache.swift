/// The tokens that were got and have time left.
struct TokenCache {
    /// More users than one process serves in an hour, in a few megabytes.
    static let maximumCount = 10_000

    private var tokens: [TokenSubject: WorkerTokens.Token] = [:]

    var count: Int { tokens.count }

    /// Returns a token that lives for `minimumLife` more seconds.
    func token(for subject: TokenSubject, minimumLife: Int, at now: Double) -> WorkerTokens.Token? {
        guard let token = tokens[subject] else { return nil }
        let left = token.deadline - now
        guard left > 0, left >= Double(minimumLife) else { return nil }
        return token
    }

    mutating func store(_ token: WorkerTokens.Token, for subject: TokenSubject, at now: Double) {
        tokens[subject] = token
        if tokens.count > Self.maximumCount { shrink(at: now) }
    }

    /// Removes a token that Google refused, under whichever scopes it was asked for.
    mutating func remove(_ refused: WorkerTokens.Token, of user: String) {
        tokens = tokens.filter { !$0.key.isOf(user) || $0.value.value != refused.value }
    }

    mutating func remove(user: String) {
        tokens = tokens.filter { !$0.key.isOf(user) }
    }

    /// Removes the expired tokens, or else the half that expires first.
    private mutating func shrink(at now: Double) {
        tokens = tokens.filter { $0.value.deadline > now }
        guard tokens.count > Self.maximumCount else { return }
        let deadlines = tokens.values.map(\.deadline).sorted()
        let median = deadlines[deadlines.count / 2]
        tokens = tokens.filter { $0.value.deadline > median }
    }
}
