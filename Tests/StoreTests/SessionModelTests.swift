import Clocks
import Foundation
import Secrets
import Store
import Testing

@Suite("A session family under random presentations", .timeLimit(.minutes(2)))
struct SessionModelTests {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// `MODEL_ROUNDS` runs more rounds; `MODEL_SEED` begins with the seed of a failure.
    @Test("rotates each token once, repeats only the current one, and ends by any other")
    func rounds() throws {
        let environment = ProcessInfo.processInfo.environment
        let rounds = environment["MODEL_ROUNDS"].flatMap { UInt64($0) } ?? 500
        let first = environment["MODEL_SEED"].flatMap { UInt64($0) } ?? 1
        for seed in first..<(first + rounds) {
            do {
                try Self.run(SeededRandom(seed: seed))
            } catch {
                Issue.record("run again with MODEL_SEED=\(seed) MODEL_ROUNDS=1: \(error)")
                return
            }
        }
    }

    private static func run(_ random: SeededRandom) throws {
        func pick(_ count: Int) -> Int { Int(random.nextBits() % UInt64(count)) }
        func hash(_ token: Int) -> [UInt8] { Digest.sha256(Array("token \(token)".utf8)) }
        let lifetime = Duration.seconds(30 * 86_400)
        var now = start
        var session = Session.start(
            id: .random(from: random),
            userID: "u",
            tokenHash: hash(0),
            expiresAt: now + lifetime,
            at: now
        )
        var current = 0
        var steps: [String] = []
        func expect(_ condition: Bool, _ message: String) throws {
            if !condition { throw Violation(description: "\(message)\n\(steps.joined(separator: "\n"))") }
        }
        for _ in 0..<40 {
            now = now + (pick(40) == 0 ? .seconds(pick(40) * 86_400) : .milliseconds(pick(6000)))
            // The current token and the one before it most of the time, else any, or one that was never issued.
            let last = max(0, current - 1)
            let presented = [current, current, current, last, last, pick(current + 2)][pick(6)]
            let (former, next) = (session, current + 1)
            let elapsed = now.milliseconds - start.milliseconds
            steps.append("\(elapsed) ms: token \(presented), the current one is \(current)")
            let outcome = session.rotate(
                presented: hash(presented),
                to: hash(next),
                successor: try Sample.sealed("token \(next)"),
                expiresAt: now + lifetime,
                at: now
            )
            switch outcome {
            case .rotated:
                try expect(presented == current && former.isLive(at: now), "another than the current token rotated")
                try expect(session.expiresAt == now + lifetime, "a rotation did not prolong the session")
                current = next
            case .repeated(let sealed):
                try expect(presented == current - 1, "a token older than the last got a successor")
                try expect(sealed == (try Sample.sealed("token \(current)")), "the successor is not the current token")
                try expect(former.rotatedAt.map { now < $0 + Session.grace } ?? false, "repeated after the grace")
                try expect(session == former, "a repetition changed the session")
            case .reused:
                let isInGrace = former.rotatedAt.map { now < $0 + Session.grace } ?? false
                try expect(presented != current && former.isLive(at: now), "the current token counts as reused")
                try expect(presented != current - 1 || !isInGrace, "a token within the grace counts as reused")
                try expect(session == former, "a reuse changed the session, which ends by being removed")
                return
            case .expired:
                try expect(!former.isLive(at: now) && session == former, "a live session counts as expired")
                return
            }
        }
    }
}
