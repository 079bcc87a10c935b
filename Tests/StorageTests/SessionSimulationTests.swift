import Base
import Foundation
import TestSupport
import Testing

@testable import Storage

/// Only the rules, on one session value.
private final class RulesServer: SimulatedServer {
    private var session: Session?

    func begin(token: Int, at clocks: ServerClocks) async throws { session = Self.session(token: token, at: clocks) }

    static func session(token: Int, at clocks: ServerClocks) -> Session {
        Session.start(
            id: Sample.sessionID(1),
            userID: "user",
            tokenHash: hash(token),
            expiresAt: clocks.wall + .seconds(30 * 86_400),
            at: clocks.wall,
            leaseTime: clocks.lease
        )
    }

    static func hash(_ token: Int) -> [UInt8] { Array("token \(token)".utf8) }

    /// Returns the outcome, and the token for the caller.
    static func rotate(
        _ session: inout Session,
        _ token: Int,
        next: Int,
        at clocks: ServerClocks
    ) throws -> (RotationOutcome, Int?) {
        let outcome = session.rotate(
            presented: hash(token),
            to: hash(next),
            successor: try Sample.sealed("\(next)"),
            expiresAt: clocks.wall + .seconds(30 * 86_400),
            at: clocks.wall,
            leaseTime: clocks.lease,
            grace: .seconds(60)
        )
        switch outcome {
        case .rotated: return (outcome, next)
        case .repeated(let sealed, _): return (outcome, Sample.unsealed(sealed))
        case .reused, .expired: return (outcome, nil)
        }
    }

    func present(_ token: Int, next: Int, at clocks: ServerClocks) async throws -> Int? {
        guard var changed = session else { return nil }
        let (_, answer) = try Self.rotate(&changed, token, next: next, at: clocks)
        session = answer == nil ? nil : changed
        return answer
    }

    func removeExpired(at clocks: ServerClocks) async throws { session?.wipeSuccessor(at: clocks.wall) }
}

/// The same rules over a store, with each presentation in one transaction.
private struct StoreServer: SimulatedServer {
    let store: any Store

    func begin(token: Int, at clocks: ServerClocks) async throws {
        try await store.startSessions([RulesServer.session(token: token, at: clocks)])
    }

    func present(_ token: Int, next: Int, at clocks: ServerClocks) async throws -> Int? {
        try await store.transact { transaction in
            guard var session = try transaction.session(Sample.sessionID(1), ofUser: "user") else { return nil }
            let (outcome, answer) = try RulesServer.rotate(&session, token, next: next, at: clocks)
            switch outcome {
            case .rotated, .repeated: try transaction.update(session)
            case .reused, .expired: try transaction.endSession(session.id, ofUser: session.userID)
            }
            return answer
        }
    }

    func removeExpired(at clocks: ServerClocks) async throws { _ = try await store.removeExpired(at: clocks.wall) }
}

@Suite("Sessions under random schedules of a phone and an attacker", .timeLimit(.minutes(10)))
struct SessionSimulationTests {
    /// Runs schedules of each kind; `MODEL_ROUNDS` sets their number, and `MODEL_SEED` begins with the seed of a
    /// failure.
    private static func run(
        _ rounds: UInt64,
        _ body: (UInt64) async throws -> Void
    ) async throws {
        let environment = ProcessInfo.processInfo.environment
        let rounds = environment["MODEL_ROUNDS"].flatMap { UInt64($0) } ?? rounds
        let first = environment["MODEL_SEED"].flatMap { UInt64($0) } ?? 1
        for seed in first..<(first + rounds) {
            do {
                try await body(seed)
            } catch {
                Issue.record("run again with MODEL_SEED=\(seed) MODEL_ROUNDS=1: \(error)")
                return
            }
        }
    }

    @Test("An honest phone is never signed out")
    func honestPhone() async throws {
        try await Self.run(1000) { seed in
            var simulation = SessionSimulation(server: RulesServer(), seed: seed)
            try await simulation.live(uses: 12)
        }
    }

    @Test("A stolen spent token is worthless after one refresh of the owner, and the theft is visible")
    func spentToken() async throws {
        try await Self.run(1000) { seed in
            var simulation = SessionSimulation(server: RulesServer(), seed: seed)
            try await simulation.live(uses: 1 + Int(seed % 4))
            try await simulation.robSpentToken()
        }
    }

    @Test("Any stolen token is worthless after two refreshes of the owner, and the theft is visible")
    func anyToken() async throws {
        try await Self.run(1000) { seed in
            var simulation = SessionSimulation(server: RulesServer(), seed: seed)
            try await simulation.live(uses: 1 + Int(seed % 4))
            try await simulation.robAnyToken()
        }
    }

    @Test("The stores keep the data that the rules need", arguments: StoreKind.allCases)
    func stores(kind: StoreKind) async throws {
        try await Self.run(4) { seed in
            try await kind.withStore { store, _ in
                var simulation = SessionSimulation(server: StoreServer(store: store), seed: seed)
                try await simulation.live(uses: 6)
                if seed % 2 == 0 { try await simulation.robSpentToken() } else { try await simulation.robAnyToken() }
            }
        }
    }
}
