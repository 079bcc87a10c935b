/// One user's consent in the sandbox.
struct SandboxGrant: Sendable {
    /// A fault that a test has prepared.
    struct Script: Equatable, Sendable {
        var fault: SandboxFault

        /// The number of requests that still get it, or `nil` for all.
        var times: Int64?
    }

    var sub: String
    var email: String
    var name: String
    var clientID: String
    var scope: String
    /// `true` if the owner has verified the e-mail address.
    var emailIsVerified = true
    /// The Workspace domain of the owner.
    var hostedDomain: String?
    /// The secret of its client, or `nil` for a public client.
    var clientSecret: String?

    var refreshTokens: RefreshTokenChain
    /// The thumbprint of the key that its refresh tokens are bound to, or `nil` if they are not bound.
    var boundTo: String?
    var isRevoked = false

    /// The lifetime of its access tokens in seconds, or `nil` for the lifetime in the settings.
    var lifetime: Int64?
    var script: Script?
    var latency: Duration?
    /// `true` if its token requests get no answer.
    var stalls = false
    var isOnHold = false

    /// The counts of token requests: received, answered with a token, and in progress.
    var requests = 0
    var successes = 0
    var inFlight = 0

    /// `true` if its scopes let a client see the e-mail address.
    var showsEmail: Bool {
        scope.split(separator: " ").contains { $0 == "email" || $0.hasSuffix("/auth/userinfo.email") }
    }

    /// Returns the fault prepared for this request, if there is one.
    mutating func takeScript() -> SandboxFault? {
        guard let prepared = script else { return nil }
        if let times = prepared.times {
            script = times > 1 ? Script(fault: prepared.fault, times: times - 1) : nil
        }
        return prepared.fault
    }
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
    var live: [String] {
        guard let successor else { return [current] }
        return [current, successor]
    }

    /// Uses a token. `makeToken` makes its successor. A client that presents the predecessor again did not receive the
    /// successor, so a new one replaces it.
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

/// The policy for exchanging refresh tokens for new ones.
enum RotationPolicy: Equatable, Sendable {
    /// Like Google: the refresh token stays the same.
    case off

    /// Each refresh issues a successor. The predecessor stays valid until the successor is first used.
    case careful

    /// Each refresh issues a successor. The predecessor is dead at once.
    case strict
}
