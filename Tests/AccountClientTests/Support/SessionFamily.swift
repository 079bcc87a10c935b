/// The server's rules for the refresh tokens of one session, as a pure model; tokens are numbers, times are seconds.
///
/// - The current token rotates.
/// - Within the grace after a token was last spent, it gets the current token. Until its successor is presented, that counts
///   as spending it again: its answer may be lost, and another request with it may be on its way.
/// - Later, it is accepted as long as its successor was never presented, and gets another successor.
/// - A spent token whose successor was presented is reuse: the family ends.
struct SessionFamily {
    static let grace = 60

    private struct Spent {
        var at: Int
        var successor: Int
    }

    private(set) var current: Int
    private(set) var hasEnded = false
    private var spent: [Int: Spent] = [:]
    private var presented: Set<Int> = []

    init(first: Int) {
        current = first
    }

    /// Returns the refresh token to answer with, which is `successor` after a rotation; nil for a refusal.
    mutating func present(_ token: Int, successor: Int, at now: Int) -> Int? {
        guard !hasEnded, token == current || spent[token] != nil else { return nil }
        if let old = spent[token] {
            if now <= old.at + Self.grace {
                presented.insert(token)
                if !presented.contains(old.successor) { spent[token]?.at = now }
                return current
            }
            guard !presented.contains(old.successor) else {
                hasEnded = true
                return nil
            }
            // The successor that the client may never have received is replaced as well.
            spent[current] = Spent(at: now, successor: successor)
        }
        presented.insert(token)
        spent[token] = Spent(at: now, successor: successor)
        current = successor
        return successor
    }

    mutating func end() { hasEnded = true }
}
