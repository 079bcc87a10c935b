/// How refresh tokens are exchanged for new ones.
enum Rotation: Equatable, Sendable {
    /// As Google does: the refresh token stays.
    case off

    /// Each refresh issues a successor, and the predecessor stays good until that successor is first used.
    case careful

    /// Each refresh issues a successor, and the predecessor is dead at once.
    case strict
}

/// One grant's refresh tokens through its rotations.
struct RefreshTokenChain: Equatable, Sendable {
    enum Use: Equatable {
        /// The token is dead.
        case refused
        /// The token is good and stays.
        case kept
        /// The token is good and this is its successor.
        case rotated(to: String)
    }

    /// How many dead tokens are remembered, so that using one is answered as such and months of rotation need no more memory.
    private static let memory = 4

    /// The token last used, or the first one.
    private(set) var current: String

    /// The token issued last, if it has not been used yet.
    private(set) var successor: String?

    /// The dead ones, oldest first.
    private(set) var dead: [String] = []

    init(_ first: String) {
        current = first
    }

    /// The token that a client which missed nothing holds.
    var newest: String { successor ?? current }

    /// The tokens that are good now, the older first.
    var live: [String] { successor.map { [current, $0] } ?? [current] }

    /// Presents a token.
    ///
    /// Who presents the predecessor once more never got the successor, so a fresh one takes its place.
    mutating func use(_ token: String, rotation: Rotation, fresh: () -> String) -> Use {
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
