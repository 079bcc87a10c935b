/// The policy for exchanging refresh tokens for new ones.
enum RotationPolicy: Equatable, Sendable {
    /// Like Google: the refresh token stays the same.
    case off

    /// Each refresh issues a successor; the predecessor stays valid until the successor is first used.
    case careful

    /// Each refresh issues a successor; the predecessor is dead at once.
    case strict
}

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

    /// The number of dead tokens that are remembered, so that their use is recognised without unlimited memory.
    private static let memory = 4

    /// The last used token, or the first one.
    private(set) var current: String

    /// The last issued token, if it has not been used yet.
    private(set) var successor: String?

    /// The dead tokens, oldest first.
    private(set) var dead: [String] = []

    init(_ first: String) {
        current = first
    }

    /// The token of a client that received every answer.
    var newest: String { successor ?? current }

    /// The valid tokens, the older one first.
    var live: [String] { successor.map { [current, $0] } ?? [current] }

    /// Uses a token.
    ///
    /// A client that presents the predecessor again did not receive the successor, so a fresh one replaces it.
    mutating func use(_ token: String, rotation: RotationPolicy, fresh: () -> String) -> Use {
        guard live.contains(token) else { return .refused }
        if token == successor {
            bury(current)
            current = token
            successor = nil
        }
        guard rotation != .off else { return .kept }
        if let unused = successor { bury(unused) }
        let next = fresh()
        if rotation == .strict {
            bury(current)
            current = next
            successor = nil
        } else {
            successor = next
        }
        return .rotated(to: next)
    }

    private mutating func bury(_ token: String) {
        dead.append(token)
        if dead.count > Self.memory { dead.removeFirst() }
    }
}
