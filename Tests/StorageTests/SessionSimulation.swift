import Base

@testable import Storage

extension Session {
    /// Removes the sealed successor as ``Store/removeExpired(by:at:)`` does.
    mutating func wipeSuccessor(at now: Timestamp) {
        guard let end = successorUntil, end <= now || end > now + Self.maximumGrace else { return }
        successor = nil
    }
}

/// The clocks of a simulated server: real time passes on both; the wall clock is stepped, and the boot clock restarts.
struct ServerClocks: Sendable {
    var wall = start
    var lease = LeaseTime(epoch: "boot 0", instant: BootInstant(milliseconds: 1_000_000))

    mutating func pass(_ milliseconds: Int64) {
        wall = wall + .milliseconds(milliseconds)
        lease.instant = lease.instant + .milliseconds(milliseconds)
    }
}

/// The server of a simulation: only the rules, or a real store.
protocol SimulatedServer {
    func begin(token: Int, at clocks: ServerClocks) async throws
    /// Returns the token that the caller gets; `nil` if it is refused.
    func present(_ token: Int, next: Int, at clocks: ServerClocks) async throws -> Int?
    func removeExpired(at clocks: ServerClocks) async throws
}

/// One phone, its network, and an attacker, in a random schedule that a seed determines.
///
/// The phone behaves as the app does: each call sends the token that is stored when it starts, and stores the token of
/// its answer regardless of the token that is stored by then. A call takes at most `longestCall`; a slower one is lost.
struct SessionSimulation<Server: SimulatedServer> {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    private enum Event {
        /// The app needs tokens: several calls at once.
        case use(calls: Int, jitter: Int)
        case send
        case arrive(token: Int, answerAfter: Int?, process: Int)
        case answer(token: Int?, process: Int)
        case kill
        case removeExpired
        case step(seconds: Int64)
        case restart
    }

    static var grace: Duration { .seconds(60) }
    static var longestCall: Int { 20_000 }
    private static var day: Int { 86_400_000 }

    let server: Server
    let random: SeededRandom
    private var queue: [(at: Int64, event: Event)] = []
    private var now: Int64 = 0
    private var clocks = ServerClocks()
    private var boots = 0
    private var downUntil: Int64 = 0
    private var process = 0
    private var lastToken = 0
    private var steps: [(at: Int64, text: StaticString, number: Int, answer: Int?)] = []
    private(set) var stored = 0
    private(set) var everStored = [0]
    private(set) var isSignedOut = false
    /// `true` once an attacker has presented a token: a sign-out may then be the discovery of the theft.
    private var isStolen = false

    init(server: Server, seed: UInt64) {
        self.server = server
        random = SeededRandom(seed: seed)
    }

    private func pick(_ count: Int) -> Int { Int(random.nextBits() % UInt64(count)) }

    private func chance(_ percent: Int) -> Bool { pick(100) < percent }

    private func violation(_ text: String) -> Violation {
        let lines = steps.suffix(60).map { "\($0.at) ms: \($0.text) \($0.number) -> \($0.answer ?? 401)" }
        return Violation(description: ([text] + lines).joined(separator: "\n"))
    }

    /// Formatted only when a schedule fails; 401 stands for a refusal.
    private mutating func note(_ text: StaticString, _ number: Int = 0, gets answer: Int? = nil) {
        steps.append((now, text, number, answer))
    }

    private mutating func add(_ event: Event, after milliseconds: Int) {
        let at = now + Int64(milliseconds)
        let position = queue.lastIndex { $0.at <= at }.map { $0 + 1 } ?? 0
        queue.insert((at, event), at: position)
    }

    // MARK: The phone

    /// Runs the phone for a number of uses, and checks that it is never signed out.
    mutating func live(uses: Int) async throws {
        if lastToken == 0, now == 0 { try await server.begin(token: 0, at: clocks) }
        for _ in 0..<uses {
            add(.use(calls: 1 + pick(8), jitter: [1, 100, 300, 5000][pick(4)]), after: gap())
            if chance(15) { add(.kill, after: pick(10_000)) }
            if chance(30) { add(.removeExpired, after: pick(200_000)) }
            if chance(5) { add(.step(seconds: Int64(pick(200_000)) - 100_000), after: pick(20_000)) }
            if chance(3) { add(.restart, after: pick(20_000)) }
            try await runQueue(until: chance(40) ? now + Int64(pick(Self.longestCall)) : .max)
        }
        try await runQueue(until: .max)
    }

    private func gap() -> Int {
        switch pick(6) {
        case 0: pick(50)
        case 1: pick(20_000)
        case 2: 55_000 + pick(10_000)
        case 3: 60_000 + pick(600_000)
        case 4: 1_800_000
        default: pick(3 * Self.day)
        }
    }

    private mutating func runQueue(until end: Int64) async throws {
        while let next = queue.first, next.at <= end, !isSignedOut {
            queue.removeFirst()
            clocks.pass(next.at - now)
            now = next.at
            try await handle(next.event)
        }
        if isSignedOut { queue = [] }
    }

    private mutating func handle(_ event: Event) async throws {
        switch event {
        case .use(let calls, let jitter):
            for _ in 0..<calls { add(.send, after: pick(jitter)) }
        case .send:
            let total = chance(70) ? pick(400) : pick(Self.longestCall)
            let request = pick(total + 1)
            note("sends", stored, gets: 0)
            if !chance(5) {
                let answer: Int? = chance(12) ? nil : total - request
                add(.arrive(token: stored, answerAfter: answer, process: process), after: request)
            }
        case .arrive(let token, let answerAfter, let process):
            guard now >= downUntil else { break }
            let answer = try await present(token)
            note("the server gets", token, gets: answer)
            if let answerAfter { add(.answer(token: answer, process: process), after: answerAfter) }
        case .answer(let token, let process):
            // A killed app reads no answer.
            guard process == self.process else { break }
            guard let token else {
                isSignedOut = true
                if !isStolen { throw violation("the honest phone is signed out") }
                break
            }
            note("stores", token, gets: 0)
            stored = token
            everStored.append(token)
            // Another call may have failed with the former access token since then.
            if chance(20) { add(.send, after: pick(300)) }
        case .kill:
            note("killed", gets: 0)
            process += 1
        case .removeExpired:
            try await server.removeExpired(at: clocks)
        case .step(let seconds):
            note("the wall clock steps by seconds", Int(seconds), gets: 0)
            clocks.wall = clocks.wall + .seconds(seconds)
        case .restart:
            note("the server restarts", boots, gets: 0)
            boots += 1
            clocks.lease = LeaseTime(epoch: "boot \(boots)", instant: BootInstant(milliseconds: 1000))
            downUntil = now + Int64(Self.longestCall)
        }
    }

    private mutating func present(_ token: Int) async throws -> Int? {
        lastToken += 1
        return try await server.present(token, next: lastToken, at: clocks)
    }

    // MARK: The attacker

    private mutating func wait(_ milliseconds: Int) async throws {
        let end = now + Int64(milliseconds)
        try await runQueue(until: end)
        clocks.pass(end - now)
        now = end
    }

    /// Waits until the family's last change is outside the grace.
    private mutating func waitOutsideGrace() async throws {
        try await runQueue(until: .max)
        try await wait(61_000 + pick(3_600_000))
    }

    /// Runs one refresh of the phone whose answer arrives.
    private mutating func refreshCleanly() async throws {
        guard !isSignedOut else { return }
        let answer = try await present(stored)
        note("the owner sends", stored, gets: answer)
        guard let answer else { return isSignedOut = true }
        stored = answer
        everStored.append(answer)
    }

    private mutating func steal(_ token: Int) async throws -> Int? {
        isStolen = true
        let answer = try await present(token)
        note("the attacker sends", token, gets: answer)
        return answer
    }

    /// Plays an attacker with a spent token that the phone does not hold, who uses it outside the grace.
    ///
    /// After one refresh of the owner none of the attacker's tokens is valid.
    mutating func robSpentToken() async throws {
        try await waitOutsideGrace()
        if chance(50) {
            try await refreshCleanly()
            try await waitOutsideGrace()
        }
        guard let stolen = everStored.filter({ $0 != stored }).last(where: { _ in chance(60) }) else { return }
        var loot = [stolen]
        for _ in 0..<(1 + pick(3)) {
            if let answer = try await steal(loot[loot.count - 1]) { loot.append(answer) }
            try await waitOutsideGrace()
        }
        try await refreshCleanly()
        try await waitOutsideGrace()
        try await expectWorthless(loot)
    }

    /// Plays an attacker with any token, who uses stolen tokens at any time, also within the grace and between the
    /// owner's calls.
    ///
    /// After two refreshes of the owner outside the grace none of the attacker's tokens is valid.
    mutating func robAnyToken() async throws {
        var loot = [chance(50) ? stored : everStored[pick(everStored.count)]]
        for _ in 0..<(1 + pick(5)) {
            if chance(60), !isSignedOut { add(.use(calls: 1 + pick(3), jitter: 300), after: pick(1000)) }
            try await wait([pick(500), pick(60_000), 61_000 + pick(3_600_000)][pick(3)])
            if let answer = try await steal(loot[pick(loot.count)]) { loot.append(answer) }
            if chance(20), !isSignedOut { loot.append(stored) }
        }
        for _ in 0..<2 {
            try await waitOutsideGrace()
            try await refreshCleanly()
        }
        try await waitOutsideGrace()
        try await expectWorthless(loot)
    }

    private mutating func expectWorthless(_ loot: [Int]) async throws {
        // The newest first: an older one would end the family.
        for token in loot.reversed() where try await steal(token) != nil {
            throw violation("the attacker's token \(token) is good after the owner's refresh")
        }
        // The theft is visible: the owner has to sign in again.
        guard try await present(stored) == nil else { throw violation("the theft is not detected") }
    }
}
