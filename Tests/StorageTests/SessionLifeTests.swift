import Base
import Crypto
import Testing

@testable import Storage

@Suite("A session's refresh tokens rotate, and a stolen one ends the family")
struct SessionLifeTests {
    private static let renewed = RotationOutcome.rotated(isLateAnswer: false)

    /// Presents tokens in order, each with the seconds after the start and the token that the phone gets; 0 is a
    /// refusal.
    ///
    /// A new token is named by the position of its presentation, from 2.
    private func present(
        _ steps: [(seconds: Int, token: UInt8, answer: UInt8)],
        wiping: Bool = true,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var session = Sample.session(1)
        for (position, step) in steps.enumerated() {
            let span = Duration.seconds(step.seconds)
            if wiping { session.wipeSuccessor(at: start + span) }
            let next = UInt8(position + 2)
            let outcome = try Sample.rotate(&session, step.token, to: next, after: span, successor: "\(next)")
            let answer: UInt8 =
                switch outcome {
                case .rotated: next
                case .repeated(let sealed, _): UInt8(Sample.unsealed(sealed) ?? 0)
                case .reused, .expired: 0
                }
            #expect(answer == step.answer, "step \(position): \(step)", sourceLocation: sourceLocation)
        }
    }

    @Test("The current token is renewed, and lives on from then")
    func rotation() throws {
        var session = Sample.session(1)
        #expect(try Sample.rotate(&session, 1, to: 2, after: .seconds(100)) == Self.renewed)
        #expect(session.expiresAt == start + .seconds(7300))
        #expect(try Sample.rotate(&session, 2, to: 3, after: .seconds(100)) == Self.renewed)
        #expect(session.family.currentHash == [3])
    }

    @Test("Within the grace any token of the family gets the current tokens, however many steps are between")
    func grace() throws {
        try present([(0, 1, 2), (0, 2, 3), (1, 1, 3), (2, 3, 5), (59, 1, 5), (59, 2, 5), (59, 5, 8), (59, 1, 8)])
    }

    @Test("A spent token whose successor was never used is accepted at any time, and one successor is current")
    func lostAnswer() throws {
        try present([(0, 1, 2), (59, 1, 2), (120, 1, 4), (121, 1, 4), (3000, 4, 6)])
        try present([(0, 1, 2), (61, 1, 3), (1000, 1, 4), (2000, 4, 5), (3000, 5, 6)], wiping: false)
    }

    @Test("A token that comes after the grace and whose successor was used ends the family")
    func reuse() throws {
        try present([(0, 1, 2), (1, 2, 3), (60, 1, 0)])
        try present([(0, 1, 2), (100, 2, 3), (170, 1, 0)])
        try present([(0, 1, 2), (100, 2, 3), (200, 3, 4), (300, 2, 0)])
        try present([(0, 1, 2), (1, 77, 0)])
    }

    @Test("A token that an overtaking answer put back on the phone is accepted hours later")
    func overtaken() throws {
        // 2 is returned to two calls; the second of these answers reaches the phone after 3 and 4.
        try present([(0, 1, 2), (1, 1, 2), (2, 2, 4), (3, 4, 5), (7000, 2, 6), (7100, 6, 7)])
        // Not if a newer token was used outside the grace: then the phone does not hold it any more.
        try present([(0, 1, 2), (1, 1, 2), (2, 2, 4), (100, 4, 5), (7000, 2, 0)])
    }

    @Test("Of two answers to one token the one that is used first counts, and the other is reuse after the grace")
    func siblings() throws {
        var session = Sample.session(1)
        #expect(try Sample.rotate(&session, 1, to: 2) == Self.renewed)
        #expect(try Sample.rotate(&session, 1, to: 3, after: .seconds(100)) == Self.renewed)
        #expect(try Sample.rotate(&session, 2, to: 4, after: .seconds(200)) == .rotated(isLateAnswer: true))
        #expect(try Sample.rotate(&session, 3, to: 5, after: .seconds(300)) == .reused)
    }

    @Test("After the machine's restart no token counts as within the grace, and the stored ones still work")
    func restart() throws {
        for (token, outcome) in [(1, .reused), (2, Self.renewed), (3, Self.renewed)] as [(UInt8, RotationOutcome)] {
            var session = Sample.session(1)
            #expect(try Sample.rotate(&session, 1, to: 2) == Self.renewed)
            #expect(try Sample.rotate(&session, 2, to: 3, after: .seconds(1)) == Self.renewed)
            let later = session.rotate(
                presented: [token],
                to: [4],
                successor: try Sample.sealed("4"),
                expiresAt: start + .seconds(7200),
                at: start + .seconds(5),
                leaseTime: LeaseTime(epoch: "next boot", instant: BootInstant(milliseconds: 1_000_000)),
                grace: Session.defaultGrace
            )
            #expect(later == outcome, "token \(token)")
        }
    }

    @Test("A family is read back from its bytes, and damaged bytes are refused")
    func bytes() throws {
        var session = Sample.session(1)
        for step in UInt8(1)...5 { _ = try Sample.rotate(&session, step, to: step + 1, after: .seconds(Int(step))) }
        let (family, bytes) = (session.family, session.family.historyBytes)
        #expect(TokenFamily(currentHash: [6], historyBytes: bytes) == family)
        for count in 0..<bytes.count {
            #expect(TokenFamily(currentHash: [6], historyBytes: Array(bytes.prefix(count))) == nil)
        }
        #expect(TokenFamily(currentHash: [6], historyBytes: bytes + [0]) == nil)
        #expect(TokenFamily(currentHash: [6], historyBytes: nil) != nil)
    }

    @Test("Instants that no clock shows are damage", arguments: [Int64.min + 1, -1 << 62, 1 << 62, .max])
    func impossibleInstants(milliseconds: Int64) throws {
        var session = Sample.session(1)
        #expect(try Sample.rotate(&session, 1, to: 2) == Self.renewed)
        let impossible = BootInstant(milliseconds: milliseconds)
        var issued = session.family
        issued.issuedAt = impossible
        var given = session.family
        given.sentAt = impossible
        var replaced = session.family
        replaced.earlier[0].replacedAt = impossible
        for family in [issued, given, replaced] {
            #expect(TokenFamily(currentHash: [2], historyBytes: family.historyBytes) == nil)
        }
    }

    @Test("The history of a session is bounded, whatever tokens are presented")
    func bounds() throws {
        var session = Sample.session(1)
        for step in 0..<300 {
            _ = try Sample.rotate(&session, 1, to: UInt8(step % 250) + 2, after: .seconds(step * 61))
            #expect(session.family.historyBytes.count < 4096)
        }
        for step in 0..<300 {
            let current = try #require(session.family.currentHash.first)
            let next = current == 255 ? 2 : current + 1
            _ = try Sample.rotate(&session, current, to: next, after: .milliseconds(20_000_000 + step))
            #expect(session.family.historyBytes.count < 4096)
        }
    }

    @Test("No token is rotated after the family has expired", arguments: [1, 77] as [UInt8])
    func expiry(token: UInt8) throws {
        var session = Sample.session(1)
        #expect(session.isLive(at: start + .seconds(3600) - .milliseconds(1)))
        #expect(try Sample.rotate(&session, token, to: 2, after: .seconds(3600)) == .expired)
        #expect(session == Sample.session(1))
    }

    @Test("An id is parsed only from its own form, and random ones differ")
    func ids() throws {
        let seeded = SeededRandom(seed: 7)
        let id = SessionID.random(from: seeded)
        #expect(SessionID(text: id.description) == id)
        #expect(SessionID(bytes: id.bytes) == id)
        #expect(id.description.count == 32)
        #expect(SessionID.random(from: seeded) != id)
        let bad = [
            "", String(repeating: "0", count: 31), String(repeating: "g", count: 32), id.description.uppercased(),
        ]
        for text in bad + [id.description + "0", String(repeating: "é", count: 16)] {
            #expect(SessionID(text: text) == nil, "\(text)")
        }
    }

    @Test("A successor is opened only for its own session")
    func sealing() throws {
        let vault = try Sample.vault()
        let id = Sample.sessionID(1)
        let sealed = try vault.seal(sessionToken: Secret("successor"), for: id)
        #expect(try vault.openSuccessor(sealed, of: id).reveal() == "successor")
        #expect(throws: CryptoError.self) { try vault.openSuccessor(sealed, of: Sample.sessionID(2)) }
    }
}
