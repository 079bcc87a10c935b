import Base

@testable import Storage

/// The refresh tokens of one session under the server's own rules; tokens are increasing numbers, times are seconds.
struct SessionFamily {
    private let first: Int
    private(set) var current: Int
    private(set) var hasEnded = false
    private var family: TokenFamily

    init(first: Int, at now: Int) {
        self.first = first
        current = first
        family = TokenFamily(firstHash: Self.hash(first), at: Self.time(now))
    }

    /// Returns the refresh token to answer with, which is `successor` after a rotation; `nil` for a refusal.
    mutating func present(_ token: Int, successor: Int, at now: Int) -> Int? {
        // A token of another session names that session, and cannot end this one.
        guard !hasEnded, token >= first, token <= current else { return nil }
        let (hash, time, grace) = (Self.hash(token), Self.time(now), Session.defaultGrace)
        switch family.decide(presented: hash, canRepeat: true, at: time, grace: grace) {
        case .renew:
            family.renew(presented: hash, with: Self.hash(successor), at: time, grace: grace)
            current = successor
        case .repeatCurrent(let mustRecord):
            if mustRecord { family.recordRepetition(to: hash, at: time) }
        case .reuse:
            hasEnded = true
            return nil
        }
        return current
    }

    mutating func end() { hasEnded = true }

    private static func hash(_ token: Int) -> [UInt8] { Array("\(token)".utf8) }

    private static func time(_ seconds: Int) -> LeaseTime {
        LeaseTime(epoch: "boot", instant: BootInstant(milliseconds: Int64(seconds) * 1000))
    }
}
