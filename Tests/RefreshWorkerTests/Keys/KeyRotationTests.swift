import Crypto
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker

@Suite("Rotation", .timeLimit(.minutes(10)))
struct KeyRotationTests {
    @Test("waits for a slow worker, then seals all tokens again while that worker continues to write")
    func laggingWorker() async throws {
        try await RotationFixture.with { fixture in
            let lagging = try fixture.openWorker()
            try await lagging.report()
            let follows = Mutex(0)
            let outcome = try await fixture.rotate { number in
                // The worker writes with its own ring and reads the file again only occasionally.
                try await fixture.base.insert(
                    1000 + number...1000 + number,
                    sealedBy: lagging.vault,
                    into: lagging.store
                )
                if number.isMultiple(of: 3) {
                    try lagging.vault.ring.reload()
                    follows.withLock { $0 += 1 }
                }
                try await lagging.report()
            }
            await lagging.store.close()
            let events = fixture.events
            let new = try #require(outcome?.sealingKeyID)
            #expect(events.first == .added(new))
            #expect(events.contains(.waiting(.awaitHolders(of: new, lacking: ["lagging"]))))
            #expect(events.contains(.waiting(.awaitSealers(with: new, lacking: ["lagging"]))))
            #expect(follows.withLock { $0 } >= 2)
            #expect(outcome?.retirable == [fixture.old])
            #expect(outcome?.remainingTokens == 0)
            try await fixture.expectEverythingSealed(with: new)
        }
    }

    @Test("also seals again tokens that an old key sealed during the rotation")
    func lateWrite() async throws {
        try await RotationFixture.with { fixture in
            // A former ring in a process that does not report.
            let former = try fixture.base.openVault()
            let outcome = try await fixture.rotate { number in
                guard number == 2 else { return }
                try await fixture.base.insert(0...0, sealedBy: former, into: fixture.store)
            }
            let new = try #require(outcome?.sealingKeyID)
            #expect(outcome?.resealed == 502)
            try await fixture.expectEverythingSealed(with: new)
        }
    }

    @Test("continues after a stop at any point to the same end, without another key")
    func interruptions() async throws {
        var stops = 0
        var isComplete = false
        while !isComplete {
            stops += 1
            let limit = stops
            isComplete = try await RotationFixture.with { fixture in
                let worker = try fixture.openWorker()
                try await worker.report()
                let follow: @Sendable (Int64) async throws -> Void = { number in
                    if number.isMultiple(of: 2) { try worker.vault.ring.reload() }
                    try await worker.report()
                }
                let first = try await fixture.rotate(stoppingAfter: limit, follow)
                let last = if let first { first } else { try await fixture.rotate(follow) }
                await worker.store.close()
                let new = try #require(last?.sealingKeyID)
                #expect(try KeyRingFile.load(path: fixture.base.keyFile).keyIDs == [new, fixture.old])
                #expect(fixture.events.count { if case .added = $0 { true } else { false } } == 1)
                try await fixture.expectEverythingSealed(with: new)
                return first != nil
            }
        }
        // Checked at the start, at each wait and between batches.
        #expect(stops > 8)
    }

    @Test("gives up on a worker that never follows, names it, and has not activated a key")
    func workerThatNeverFollows() async throws {
        try await RotationFixture.with { fixture in
            let worker = try fixture.openWorker()
            try await worker.report()
            let began = fixture.base.time.sinceBoot
            let refusal = await failure {
                _ = try await fixture.rotate { _ in try await worker.report() }
                return .success
            }
            await worker.store.close()
            #expect(refusal?.exitCode == .leftForLater)
            #expect(refusal?.message.contains("lagging") == true)
            #expect(refusal?.message.contains("LoadCredential") == true)
            #expect(fixture.base.time.sinceBoot - began == KeyRotation.workerTimeout)
            let ring = try KeyRingFile.load(path: fixture.base.keyFile)
            #expect(ring.sealingKeyID == fixture.old)
            #expect(ring.keys.count == 2)
        }
    }

    @Test("does not wait for a worker that has died")
    func deadWorker() async throws {
        try await RotationFixture.with { fixture in
            let worker = try fixture.openWorker()
            try await worker.report()
            await worker.store.close()
            let outcome = try await fixture.rotate()
            try await fixture.expectEverythingSealed(with: try #require(outcome?.sealingKeyID))
        }
    }

    @Test("leaves a damaged token unchanged, names its user, and seals the others again")
    func damagedToken() async throws {
        try await RotationFixture.with { fixture in
            // Another grant's token: its key opens it only in its own row.
            let otherToken = try fixture.base.openVault().seal(refreshToken: Secret("x"), for: GrantID(rawValue: 9999))
            let damaged = GrantID(rawValue: 7)
            try await fixture.store.transact { transaction in
                guard var grant = try transaction.grant(damaged) else { return }
                grant.reseal(refreshToken: otherToken, accessToken: nil)
                try transaction.update(grant)
            }
            let outcome = try await fixture.rotate()
            let new = try #require(outcome?.sealingKeyID)
            #expect(outcome?.unreadable == ["user 7"])
            #expect(outcome?.remainingTokens == 1)
            #expect(outcome?.retirable == [])
            #expect(try await fixture.store.keysInUse() == [new: 499, fixture.old: 1])
        }
    }

    @Test("never prints a token or a key")
    func silence() async throws {
        try await RotationFixture.with { fixture in
            let outcome = try await fixture.rotate()
            let text = "\(fixture.events) \(String(describing: outcome))"
            #expect(!text.contains("refresh 1"))
            #expect(!text.contains("access 1"))
        }
    }
}

/// A database of sealed grants, and a rotation over it that a test controls step by step.
private final class RotationFixture: Sendable {
    /// A second process on the same database and key ring.
    struct Worker: Sendable {
        let store: SQLiteStore
        let vault: TokenVault

        func report() async throws {
            let ring = vault.ring.current
            _ = try await store.report(
                WorkerReport(id: "lagging", keyIDs: ring.keyIDs, sealingKeyID: ring.sealingKeyID)
            )
        }
    }

    let base: OperatorFixture
    let old: KeyID
    let store: SQLiteStore
    private let reported = Mutex<[KeyRotation.ProgressEvent]>([])

    static func with<Result>(_ body: (RotationFixture) async throws -> Result) async throws -> Result {
        try await OperatorFixture.with { fixture in
            let rotation = try await RotationFixture(fixture)
            let result: Result
            do {
                result = try await body(rotation)
            } catch {
                await rotation.store.close()
                throw error
            }
            await rotation.store.close()
            return result
        }
    }

    private init(_ fixture: OperatorFixture) async throws {
        base = fixture
        old = try KeyRingFile.generate(path: base.keyFile)
        store = try base.openStore()
        // More than two batches.
        try await base.insert(1...250, sealedBy: try fixture.openVault(), into: store)
    }

    var events: [KeyRotation.ProgressEvent] { reported.withLock { $0 } }

    func openWorker() throws -> Worker {
        Worker(store: try base.openStore(), vault: try base.openVault())
    }

    /// Runs a rotation; `duringPause` performs the work of other processes in each of its pauses, counted from one.
    func rotate(
        stoppingAfter checks: Int = .max,
        _ duringPause: @escaping @Sendable (Int64) async throws -> Void = { _ in }
    ) async throws -> KeyRotation.Outcome? {
        let vault = try base.openVault()
        let checksDone = Mutex(0)
        let pauses = Mutex<Int64>(0)
        let time = base.time
        let rotation = KeyRotation(
            keyFile: base.keyFile,
            wrapping: nil,
            store: store,
            vault: vault,
            heartbeat: WorkerHeartbeat(
                store: store,
                ring: vault.ring,
                workerName: "rotation",
                diagnostics: base.diagnostics
            ),
            time: time,
            pause: { span in
                time.advance(by: span)
                let number = pauses.withLock { pauses in
                    pauses += 1
                    return pauses
                }
                try await duringPause(number)
            },
            isStopping: {
                checksDone.withLock { done in
                    done += 1
                    return done > checks
                }
            },
            reportProgress: { [self] events in reported.withLock { $0.append(events) } }
        )
        let outcome = try await rotation.run()
        try await store.removeWorker("rotation")
        return outcome
    }

    /// Expects every token to be sealed with that key, and to open to the same text as before.
    func expectEverythingSealed(with key: KeyID) async throws {
        let vault = try base.openVault()
        #expect(vault.ring.current.sealingKeyID == key)
        #expect(try await store.keysInUse().keys.map(\.self) == [key])
        for grant in try await store.grants(after: nil, in: nil, atMost: 10_000) {
            let refresh = try #require(try vault.openRefreshToken(of: grant))
            let access = try #require(try vault.openAccessToken(of: grant))
            #expect(refresh.reveal() == "refresh \(grant.id.rawValue)")
            #expect(access.reveal() == "access \(grant.id.rawValue)")
        }
    }
}
