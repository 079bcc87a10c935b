import Clocks
import Secrets
import Store
import Testing

@Suite("A session's refresh tokens rotate, and a stolen one ends the family")
struct SessionLifeTests {
    private let later = start + .seconds(100)

    private func rotate(_ session: inout Session, _ presented: UInt8, to next: UInt8, at now: Timestamp) throws
        -> RotationOutcome
    {
        session.rotate(
            presented: [presented],
            to: [next],
            successor: try Sample.sealed("token \(next)"),
            expiresAt: now + .seconds(7200),
            at: now
        )
    }

    @Test("The good token is rotated, and lives on from then")
    func rotation() throws {
        var session = Sample.session(1)
        #expect(try rotate(&session, 1, to: 2, at: later) == .rotated)
        #expect(session.expiresAt == later + .seconds(7200))
        #expect(try rotate(&session, 2, to: 3, at: later) == .rotated)
        #expect(session.currentHash == [3] && session.previousHash == [2] && session.rotatedAt == later)
    }

    @Test(
        "The token before it gets the same successor for ten seconds, on either side of a step of the clock",
        arguments: [(0, true), (9_999, true), (10_000, false), (-9_999, true), (-10_000, false)] as [(Int64, Bool)]
    )
    func grace(milliseconds: Int64, isRepeated: Bool) throws {
        var session = Sample.session(1)
        _ = try rotate(&session, 1, to: 2, at: later)
        let rotated = session
        let outcome = try rotate(&session, 1, to: 3, at: later + .milliseconds(milliseconds))
        #expect(outcome == (isRepeated ? .repeated(try Sample.sealed("token 2")) : .reused))
        #expect(session == rotated)
    }

    @Test("A token older than that, or a foreign one, is reused even within the grace", arguments: [1, 77] as [UInt8])
    func reuse(token: UInt8) throws {
        var session = Sample.session(1)
        _ = try rotate(&session, 1, to: 2, at: later)
        _ = try rotate(&session, 2, to: 3, at: later)
        #expect(try rotate(&session, token, to: 4, at: later) == .reused)
        #expect(session.currentHash == [3])
    }

    @Test("Nothing is rotated once the family is over, whatever is presented", arguments: [1, 77] as [UInt8])
    func expiry(token: UInt8) throws {
        var session = Sample.session(1)
        #expect(session.isLive(at: start + .seconds(3600) - .milliseconds(1)))
        #expect(try rotate(&session, token, to: 2, at: start + .seconds(3600)) == .expired)
        #expect(session == Sample.session(1))
    }

    @Test("An id is read from its text alone, and random ones differ")
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

    @Test("A successor is opened for its own session alone")
    func sealing() throws {
        let vault = try Sample.vault()
        let id = Sample.sessionID(1)
        let sealed = try vault.seal(sessionToken: Secret("successor"), for: id)
        #expect(try vault.openSuccessor(sealed, of: id).reveal() == "successor")
        #expect(throws: SealError.self) { try vault.openSuccessor(sealed, of: Sample.sessionID(2)) }
        #expect(try vault.openSuccessor(of: Sample.session(1)) == nil)
    }
}
