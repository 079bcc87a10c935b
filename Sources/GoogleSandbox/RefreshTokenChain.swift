/// The refresh tokens of one grant through its rotations.
struct RefreshTokenChain: Equatable, Sendable {
    enum Use: Equatable {
        /// The token is dead.
        case refused
        /// The token is good and stays.
        case kept
        /// The token is good and is replaced by its successor.
        case rotated(to: String)
    }

    /// The number of dead tokens that are kept, so that their use is recognised and memory stays limited.
    private static let maximumDead = 4

    /// The last used token, or the first one.
    private(set) var current: String

    /// The last issued token, if it has not been used yet.
    private(set) var successor: String?

    /// The dead tokens, oldest first.
    private(set) var dead: [String] = []

    init(_ first: String) {
        current = first
    }

    /// The token that the client has if it received every answer.
    var newest: String { successor ?? current }

    /// The valid tokens, the older one first.
    var live: [String] { successor.map { [current, $0] } ?? [current] }

    /// Uses a token.
    ///
    /// `makeToken` makes its successor.
    ///
    /// A client that presents the predecessor again did not receive the successor, so a new one replaces it.
    mutating func use(_ token: String, rotation: RotationPolicy, makeToken: () -> String) -> Use {
        guard live.contains(token) else { return .refused }
        if token == successor {
            markDead(current)
            current = token
            successor = nil
        }
        guard rotation != .off else { return .kept }
        if let unused = successor { markDead(unused) }
        let next = makeToken()
        if rotation == .strict {
            markDead(current)
            current = next
            successor = nil
        } else {
            successor = next
        }
        return .rotated(to: next)
    }

    private mutating func markDead(_ token: String) {
        dead.append(token)
        if dead.count > Self.maximumDead { dead.removeFirst() }
    }
}
