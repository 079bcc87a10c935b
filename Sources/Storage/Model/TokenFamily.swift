import Base
private import Crypto

/// The refresh tokens of one session, known by their hashes, and the rules by which one replaces another.
///
/// The type is pure: it reads no clock and no store. `docs/app.md#sessions` has the rules as a table.
package struct TokenFamily: Hashable, Sendable {
    /// The decision about one presented refresh token.
    package enum Decision: Hashable, Sendable {
        /// A new token becomes the current one. `isLateAnswer` is `true` if the presented token was replaced unused:
        /// its answer arrived later than the next one, or another client holds a copy of an earlier token.
        case renew(isLateAnswer: Bool)
        /// The current tokens are returned again. `mustRecord` is `true` if ``recordRepetition(to:at:)`` must be stored
        /// before the answer.
        case repeatCurrent(mustRecord: Bool)
        /// Two clients hold tokens of the family: it must end.
        case reuse
    }

    /// The state of a token that is not the current one.
    enum MemberState: UInt8, Hashable, Sendable {
        /// Replaced by another answer to the same token before it was presented.
        case unused = 0
        /// Presented, and no newer token has been presented since.
        case last = 1
        /// Presented, and sent again so late that an answer with it might have reached the phone after a newer one.
        case overtaken = 2
        /// Spent: the phone has presented a newer token.
        case spent = 3
    }

    struct Member: Hashable, Sendable {
        let hash: [UInt8]
        var state: MemberState
        /// The time of the last answer that contained it, or `nil` if that was in another epoch, or is unknown.
        var sentAt: BootInstant?
        /// `true` if more than one answer contained it.
        var wasRepeated: Bool
        /// The instant at which its grace begins.
        var replacedAt: BootInstant?
    }

    // A phone that follows the rules stays far below these.
    static let maximumUnused = 8
    static let maximumMembers = 64

    /// The hash of the newest token.
    var currentHash: [UInt8]
    /// The epoch of all instants.
    var epoch: String
    var issuedAt: BootInstant?
    var sentAt: BootInstant?
    var wasRepeated = false
    /// The tokens before the current one that still matter, in the order in which they were replaced.
    var earlier: [Member] = []
}

extension TokenFamily {
    /// Creates a family whose first token has just been sent.
    init(firstHash: [UInt8], at now: LeaseTime) {
        self.init(currentHash: firstHash, epoch: now.epoch, issuedAt: now.instant, sentAt: now.instant)
    }

    /// Decides about a token that names this family and whose signature is valid. `canRepeat` is `true` if the current
    /// tokens are still stored.
    func decide(presented hash: [UInt8], canRepeat: Bool, at now: LeaseTime, grace: Duration) -> Decision {
        if ConstantTime.areEqual(hash, currentHash) { return .renew(isLateAnswer: false) }
        guard let member = earlier.last(where: { ConstantTime.areEqual(hash, $0.hash) }) else { return .reuse }
        let window = Window(epoch: epoch, now: now, length: grace)
        if window.contains(member.replacedAt) {
            guard canRepeat, window.contains(issuedAt) else { return .renew(isLateAnswer: false) }
            return .repeatCurrent(mustRecord: mustRecordRepetition(to: member, in: window))
        }
        return member.state == .spent ? .reuse : .renew(isLateAnswer: member.state == .unused)
    }

    /// The time since the current token was issued, or zero if that was in another epoch.
    package func age(at now: LeaseTime) -> Duration {
        guard let issuedAt, epoch == now.epoch else { return .zero }
        return max(.zero, now.instant - issuedAt)
    }

    /// Makes `newHash` the current token, after ``decide(presented:canRepeat:at:grace:)`` returned `renew`.
    mutating func renew(presented hash: [UInt8], with newHash: [UInt8], at now: LeaseTime, grace: Duration) {
        let window = Window(epoch: epoch, now: now, length: grace)
        if epoch != now.epoch { clearInstants(epoch: now.epoch) }
        earlier.append(
            Member(hash: currentHash, state: .unused, sentAt: sentAt, wasRepeated: wasRepeated, replacedAt: now.instant)
        )
        guard let position = earlier.lastIndex(where: { ConstantTime.areEqual(hash, $0.hash) }) else {
            preconditionFailure("only a member of the family is renewed")
        }
        var presented = earlier.remove(at: position)
        // The phone now holds the presented token. It can get a different one only from an answer that is still in
        // flight, so of the other tokens only those that were sent within the grace stay valid.
        let isFirstUse = presented.state == .unused
        for index in earlier.indices {
            switch earlier[index].state {
            case .unused where isFirstUse:
                earlier[index].state = window.contains(earlier[index].sentAt) ? .overtaken : .spent
                earlier[index].replacedAt = now.instant
                // An unused token might never have arrived, so every answer with it might still be in flight.
                earlier[index].wasRepeated = true
            case .last, .overtaken:
                // It has been presented, so one answer with it has arrived. Only a repeated answer can still be in
                // flight.
                let mayArrive = earlier[index].wasRepeated && window.contains(earlier[index].sentAt)
                earlier[index].state = mayArrive ? .overtaken : .spent
            case .unused, .spent: break
            }
        }
        presented.state = .last
        presented.replacedAt = now.instant
        earlier.append(presented)
        currentHash = newHash
        issuedAt = now.instant
        sentAt = now.instant
        wasRepeated = false
        removeObsoleteMembers(window)
    }

    /// Records that the current tokens are returned again for a token.
    mutating func recordRepetition(to hash: [UInt8], at now: LeaseTime) {
        wasRepeated = true
        sentAt = now.instant
        guard let index = earlier.lastIndex(where: { ConstantTime.areEqual(hash, $0.hash) }) else { return }
        // The phone might hold this token, so requests with it might be in flight for another grace. That ends when the
        // token is spent. Otherwise a copy of it would be valid forever.
        if earlier[index].state != .spent { earlier[index].replacedAt = now.instant }
    }

    /// `true` if a repetition must be stored. Recording each one would cost a write per request. Precision to an eighth
    /// of the grace is enough.
    private func mustRecordRepetition(to member: Member, in window: Window) -> Bool {
        guard wasRepeated else { return true }
        let step = window.dividedByEight
        guard step.contains(sentAt) else { return true }
        return member.state != .spent && !step.contains(member.replacedAt)
    }

    private mutating func clearInstants(epoch: String) {
        self.epoch = epoch
        (issuedAt, sentAt) = (nil, nil)
        for index in earlier.indices { (earlier[index].sentAt, earlier[index].replacedAt) = (nil, nil) }
    }

    private mutating func removeObsoleteMembers(_ window: Window) {
        earlier.removeAll { $0.state == .spent && !window.contains($0.replacedAt) }
        var excess = earlier.count { $0.state == .unused } - Self.maximumUnused
        earlier.removeAll { member in
            guard excess > 0, member.state == .unused else { return false }
            excess -= 1
            return true
        }
        earlier = earlier.suffix(Self.maximumMembers)
    }
}

/// A span of one grace that ends now.
private struct Window {
    let epoch: String
    let now: LeaseTime
    let length: Duration

    /// `true` for an instant less than the window's length away, in both directions, since a server's clock might have
    /// been set back. An instant of another boot is outside.
    func contains(_ instant: BootInstant?) -> Bool {
        guard let instant, epoch == now.epoch else { return false }
        let elapsed = now.instant - instant
        return elapsed < length && elapsed > .zero - length
    }

    var dividedByEight: Window { Window(epoch: epoch, now: now, length: length / 8) }
}

/// The form of a family's earlier tokens and instants in one column, beside that of the current hash.
///
/// Numbers are big-endian. A format byte, the epoch, the state of the current token, then the earlier tokens.
extension TokenFamily {
    private static let format: UInt8 = 1
    /// Far more milliseconds than any boot clock or server clock shows, and few enough that differences do not
    /// overflow.
    fileprivate static let possibleInstants: ClosedRange<Int64> = -1 << 52...1 << 52

    var historyBytes: [UInt8] {
        var bytes = [Self.format]
        bytes.append(short: Array(epoch.utf8.prefix(255)))
        bytes.append(issuedAt)
        bytes.append(sentAt)
        bytes.append(wasRepeated ? 1 : 0)
        bytes.append(UInt8(earlier.count.clamped(to: 0...255)))
        for member in earlier.suffix(255) {
            bytes.append(member.state.rawValue | (member.wasRepeated ? 0x80 : 0))
            bytes.append(short: member.hash)
            bytes.append(member.sentAt)
            bytes.append(member.replacedAt)
        }
        return bytes
    }

    /// Returns a stored family, or `nil` if the bytes are damaged. A family without history has only its current token.
    init?(currentHash: [UInt8], historyBytes: [UInt8]?) {
        guard let historyBytes else {
            self.init(currentHash: currentHash, epoch: "")
            return
        }
        var rest = historyBytes[...]
        guard rest.popFirst() == Self.format, let epochBytes = rest.short(),
            let epoch = String(validating: epochBytes, as: UTF8.self), let issuedAt = rest.instant(),
            let sentAt = rest.instant(), let repeated = rest.popFirst(), let count = rest.popFirst()
        else { return nil }
        var earlier: [Member] = []
        for _ in 0..<count {
            guard let flags = rest.popFirst(), let state = MemberState(rawValue: flags & 0x7f), let hash = rest.short(),
                let sentAt = rest.instant(), let replacedAt = rest.instant()
            else { return nil }
            earlier.append(
                Member(hash: hash, state: state, sentAt: sentAt, wasRepeated: flags & 0x80 != 0, replacedAt: replacedAt)
            )
        }
        guard rest.isEmpty else { return nil }
        self.init(
            currentHash: currentHash,
            epoch: epoch,
            issuedAt: issuedAt,
            sentAt: sentAt,
            wasRepeated: repeated != 0,
            earlier: earlier
        )
    }
}

extension [UInt8] {
    fileprivate mutating func append(short text: [UInt8]) {
        append(UInt8(text.count.clamped(to: 0...255)))
        append(contentsOf: text.prefix(255))
    }

    fileprivate mutating func append(_ instant: BootInstant?) { append(bigEndian: instant?.milliseconds ?? .min) }
}

extension ArraySlice<UInt8> {
    private mutating func take(_ count: Int) -> ArraySlice? {
        guard self.count >= count else { return nil }
        defer { self = dropFirst(count) }
        return prefix(count)
    }

    fileprivate mutating func short() -> [UInt8]? { popFirst().flatMap { take(Int($0)) }.map(Array.init) }

    /// Reads an instant, which can be unknown. It returns `nil` if the bytes end before it, or hold an instant that no
    /// clock shows.
    fileprivate mutating func instant() -> BootInstant?? {
        guard let milliseconds = take(8)?.bigEndian else { return nil }
        if milliseconds == .min { return .some(nil) }
        guard TokenFamily.possibleInstants.contains(milliseconds) else { return nil }
        return BootInstant(milliseconds: milliseconds)
    }
}
