import Crypto
import Storage
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Scheduler

/// Results that cannot be stored wait and are counted; others do not wait for them.
@Suite(.timeLimit(.minutes(10)))
struct ResultCommitterTests {
    private let time = ManualTime(immediateUpTo: .milliseconds(15))

    /// Returns a refresh whose response is read.
    private func read(
        _ number: Int64,
        isForced: Bool = true,
        verdict: RefreshFailure = .noAnswer(code: "timeout"),
        answer: RefreshResult.Answer? = nil
    ) throws -> Refresh {
        let refresh = Refresh(of: try Sample.grant(number), isForced: isForced, leaseEnd: time.sinceBoot)
        refresh.didRead(RefreshResult(claim: refresh.claim, answer: answer ?? .failed(verdict, retryAfter: nil)))
        return refresh
    }

    /// Returns a refresh whose response waits to be read.
    private func answered(_ number: Int64) throws -> Refresh {
        let refresh = Refresh(of: try Sample.grant(number), isForced: true, leaseEnd: time.sinceBoot)
        let parsed = ParsedRefreshResponse(verdict: .failed(.notJSON))
        refresh.didReceive(
            ReceivedResponse(
                response: .read(parsed),
                request: SentRequest(token: Secret("token"), clientSecret: nil, sentAt: time.sinceBoot),
                receivedAt: time.now,
                latency: .zero
            )
        )
        return refresh
    }

    /// Reads every response as a success, but cannot seal the first one.
    private func readUnsealedAtFirst() throws -> ResultCommitter.Read {
        let failures = Mutex(1)
        let answer = try Sample.granted()
        return { _, claim throws(CryptoError) in
            let fails = failures.withLock { left in
                defer { left -= 1 }
                return left > 0
            }
            if fails { throw CryptoError.libraryFailure(call: "EVP_CipherUpdate", code: 1) }
            return RefreshResult(claim: claim, answer: answer)
        }
    }

    @Test("a result that the store always refuses does not block a later one, and is delivered")
    func refusedFinding() async throws {
        let fixture = ResultCommitterFixture(try store(failing: 1, with: .corrupt), time: time)
        fixture.committer.add(try read(1))
        await fixture.waitForFailure()
        fixture.committer.add(try read(2))
        let stored = await fixture.nextFinished()
        #expect(stored.grant.id == GrantID(rawValue: 2) && stored.storedDecision != nil)
        await fixture.committer.giveUp()
        let refused = await fixture.nextFinished()
        #expect(refused.grant.id == GrantID(rawValue: 1) && refused.storedDecision == nil)
    }

    @Test("results that are being written when the worker gives up are lost, and so are later ones")
    func findingInHand() async throws {
        let fixture = ResultCommitterFixture(try store(failing: .max, with: .diskFull), time: time)
        fixture.committer.add(try read(1))
        await time.sleepers(atLeast: 1)
        await fixture.committer.giveUp()
        #expect(await fixture.nextFinished().storedDecision == nil)
        fixture.committer.add(try read(2))
        time.advance(by: .seconds(5))
        #expect(await fixture.nextFinished().storedDecision == nil)
    }

    @Test("requests that were not sent are delivered without the store, also while it fails")
    func notSent() async throws {
        let fixture = ResultCommitterFixture(try store(failing: .max, with: .diskFull), time: time)
        fixture.committer.add(try read(1, verdict: .notSent(code: "withheld")))
        let finished = await fixture.nextFinished()
        #expect(finished.storedDecision == nil && finished.result.isNotSent)

        fixture.committer.add(try read(2))
        await time.sleepers(atLeast: 1)
        fixture.committer.add(try read(3, verdict: .notSent(code: "withheld")))
        time.advance(by: .seconds(5))
        #expect(await fixture.nextFinished().grant.id == GrantID(rawValue: 3))
        await fixture.committer.giveUp()
        #expect(await fixture.nextFinished().grant.id == GrantID(rawValue: 2))
    }

    @Test("results that wait while the store fails are sealed, so that no token waits in the clear")
    func readsWhatWaits() async throws {
        let reads = Stream<Void>()
        let answer = try Sample.granted()
        let fixture = ResultCommitterFixture(try store(failing: .max, with: .diskFull), time: time) { _, claim in
            reads.add(())
            return RefreshResult(claim: claim, answer: answer)
        }
        fixture.committer.add(try read(1))
        await time.sleepers(atLeast: 1)
        fixture.committer.add(try answered(2))
        time.advance(by: .seconds(5))
        await reads.next()
        await fixture.committer.giveUp()
        let finished = [await fixture.nextFinished(), await fixture.nextFinished()]
        #expect(finished.map(\.grant.id.rawValue) == [1, 2] && finished.allSatisfy { $0.storedDecision == nil })
    }

    @Test("each of many results is stored and delivered once, in the order of storing", arguments: [true, false])
    func many(areForced: Bool) async throws {
        let fixture = ResultCommitterFixture(try TestStore(time: time), time: time)
        let committer = fixture.committer
        let arrivals = try (1...1_000).map { number in
            let isSent = number % 7 != 0
            return try read(
                Int64(number),
                isForced: areForced,
                verdict: isSent ? .noAnswer(code: "timeout") : .notSent(code: "withheld")
            )
        }
        committer.expect(inFlight: arrivals.count)
        await withTaskGroup { group in
            for part in 0..<4 {
                group.addTask {
                    for refresh in arrivals where refresh.grant.id.rawValue % 4 == part {
                        committer.add(refresh)
                    }
                }
            }
        }
        var last: [[Int64]] = Array(repeating: [0, 0], count: 4)
        var delivered: Set<GrantID> = []
        for _ in arrivals {
            let finished = await fixture.nextFinished()
            let number = finished.grant.id.rawValue
            let wasSent = number % 7 != 0
            #expect((finished.storedDecision != nil) == wasSent)
            // Requests that were not sent do not wait for the store, so each kind is in order on its own.
            #expect(number > last[Int(number % 4)][wasSent ? 1 : 0])
            last[Int(number % 4)][wasSent ? 1 : 0] = number
            delivered.insert(finished.grant.id)
        }
        #expect(delivered.count == arrivals.count)
    }

    @Test("An answer that cannot be sealed is kept and stored when it can")
    func unsealed() async throws {
        let fixture = ResultCommitterFixture(try TestStore(time: time), time: time, read: try readUnsealedAtFirst())
        fixture.committer.add(try answered(1))
        await fixture.waitForFailure()
        // Others do not wait for it.
        fixture.committer.add(try read(2))
        #expect(await fixture.nextFinished().grant.id == GrantID(rawValue: 2))
        await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(5))
        let finished = await fixture.nextFinished()
        #expect(finished.grant.id == GrantID(rawValue: 1) && finished.storedDecision != nil)
    }

    @Test("An answer that could not be sealed counts as unsealed until it is, also while it waits for its next try")
    func unsealedWhileWaiting() async throws {
        let gate = Gate()
        let store = try TestStore(time: time)
        store.beforeTransaction { await gate.pass() }
        let fixture = ResultCommitterFixture(store, time: time, read: try readUnsealedAtFirst())
        let committer = fixture.committer
        committer.add(try answered(1))
        await fixture.waitForFailure()
        #expect(await committer.hasUnsealedAnswers)
        // The next try waits for the commit of another result.
        committer.add(try read(2))
        await gate.waitForCaller()
        await committer.retrySetAside()
        #expect(await committer.hasUnsealedAnswers)
        gate.open()
        let finished = [await fixture.nextFinished(), await fixture.nextFinished()]
        #expect(finished.map(\.grant.id.rawValue) == [2, 1])
        #expect(await !committer.hasUnsealedAnswers)
    }

    @Test("A result that the store refuses does not count as unsealed")
    func refusedIsSealed() async throws {
        let fixture = ResultCommitterFixture(try store(failing: 1, with: .corrupt), time: time)
        fixture.committer.add(try read(1, answer: try Sample.granted()))
        await fixture.waitForFailure()
        #expect(await !fixture.committer.hasUnsealedAnswers)
    }

    @Test(
        "When the worker gives up, answers with tokens go to the spill, in progress or waiting"
    )
    func spill() async throws {
        let spill = MemorySpill()
        let fixture = ResultCommitterFixture(try store(failing: .max, with: .unreachable), time: time, spill: spill)
        fixture.committer.add(try read(1, answer: try Sample.granted()))
        await time.sleepers(atLeast: 1)
        #expect(fixture.committer.isCommitFailing)
        fixture.committer.add(try read(2))
        fixture.committer.add(
            try read(3, answer: .flawed(code: "flawed_answer", rotated: try Sample.refreshToken()))
        )
        await fixture.committer.giveUp()
        for _ in 0..<3 { #expect(await fixture.nextFinished().storedDecision == nil) }
        #expect(await fixture.committer.unstored == UnstoredResults(spilled: 2))
        fixture.committer.add(try read(4, answer: try Sample.granted()))
        time.advance(by: .seconds(5))
        #expect(await fixture.nextFinished().storedDecision == nil)
        #expect(await fixture.committer.unstored == UnstoredResults(spilled: 3), "later results go there as well")
        #expect(spill.saved.map(\.claim.grant.rawValue) == [1, 3, 4])
    }

    @Test("A commit that does not return is not waited for, and its end is not reported twice")
    func stalledCommit() async throws {
        let spill = MemorySpill()
        let gate = Gate()
        let store = try TestStore(time: time)
        store.beforeTransaction { await gate.pass() }
        let fixture = ResultCommitterFixture(store, time: time, spill: spill)
        fixture.committer.add(try read(1, answer: try Sample.granted()))
        await gate.waitForCaller()
        await fixture.committer.giveUp()
        #expect(await fixture.nextFinished().storedDecision == nil)
        #expect(await fixture.committer.unstored == UnstoredResults(spilled: 1))
        gate.open()
        fixture.committer.add(try read(2))
        #expect(await fixture.nextFinished().grant.id == GrantID(rawValue: 2))
    }

    @Test("A spill that fails too is reported, and the answers count as lost")
    func failingSpill() async throws {
        let spill = MemorySpill(error: FileError("the disk is full"))
        let fixture = ResultCommitterFixture(try store(failing: .max, with: .diskFull), time: time, spill: spill)
        fixture.committer.add(try read(1, answer: try Sample.granted()))
        await fixture.waitForFailure()
        await fixture.committer.giveUp()
        #expect(await fixture.nextFinished().storedDecision == nil)
        #expect(await fixture.committer.unstored == UnstoredResults(lost: 1))
        await fixture.waitForFailure()
    }

    @Test("An answer counts as lost until the spill has written it")
    func stalledSpill() async throws {
        let gate = Gate()
        let fixture = ResultCommitterFixture(
            try store(failing: .max, with: .diskFull),
            time: time,
            spill: MemorySpill(gate: gate)
        )
        fixture.committer.add(try read(1, answer: try Sample.granted()))
        await fixture.waitForFailure()
        let end = Task { await fixture.committer.giveUp() }
        await gate.waitForCaller()
        #expect(await fixture.committer.unstored == UnstoredResults(lost: 1))
        gate.open()
        await end.value
        #expect(await fixture.committer.unstored == UnstoredResults(spilled: 1))
    }

    @Test("A full disk takes the reserve before it waits")
    func reserve() async throws {
        let spill = MemorySpill(reserves: 1)
        let fixture = ResultCommitterFixture(try store(failing: 1, with: .diskFull), time: time, spill: spill)
        fixture.committer.add(try read(1, answer: try Sample.granted()))
        #expect(await fixture.nextFinished().storedDecision != nil)
        #expect(spill.reserves == 0)
        #expect(!fixture.committer.isCommitFailing)
    }

    @Test("Results are spilled at once when the store was moved")
    func moved() async throws {
        let spill = MemorySpill()
        let fixture = ResultCommitterFixture(try store(failing: .max, with: .moved), time: time, spill: spill)
        fixture.committer.add(try read(1, answer: try Sample.granted()))
        #expect(await fixture.nextFinished().storedDecision == nil)
        #expect(await fixture.committer.unstored == UnstoredResults(spilled: 1))
        #expect(spill.saved.count == 1)
    }

    @Test("Tokens of a grant that a restored backup lacks go to the spill, and raise an alarm")
    func missingGrant() async throws {
        let spill = MemorySpill()
        let fixture = ResultCommitterFixture(try TestStore(time: time), time: time, spill: spill)
        fixture.committer.add(try read(1))
        #expect(await fixture.nextFinished().storedDecision?.decision.alarm == nil)
        fixture.committer.add(try read(2, answer: try Sample.granted()))
        #expect(await fixture.nextFinished().storedDecision?.decision.alarm?.kind == .rotatedTokensDropped)
        #expect(spill.saved.map(\.claim.grant.rawValue) == [2])
        #expect(await fixture.committer.unstored == UnstoredResults(spilled: 1))
    }

    @Test("A result that waited is stored in a restored backup, whose version of the token is lower")
    func restoredBackup() async throws {
        let store = try TestStore(time: time)
        let (backup, events) = Grant.connected(
            id: GrantID(rawValue: 1),
            userID: "user 1",
            incoming: IncomingTokens(clientID: "client", refreshToken: try Sample.refreshToken("of the backup")),
            dueAt: start,
            at: start
        )
        try await store.transact { transaction in
            try transaction.insert(backup)
            for event in events { try transaction.record(event) }
        }
        let fixture = ResultCommitterFixture(store, time: time)
        // The claimed grant has version 3.
        fixture.committer.add(try read(1, answer: try Sample.granted(rotated: Sample.refreshToken("rotated"))))
        #expect(await fixture.nextFinished().storedDecision?.decision.outcome == .refreshed)
        let stored = try #require(try await store.grant(GrantID(rawValue: 1)))
        let rotated = try Sample.refreshToken("rotated")
        #expect(stored.generation == 4 && stored.refreshToken == rotated)
    }

    private func store(failing transactions: Int, with code: StoreError.Code) throws -> TestStore {
        let store = try TestStore(time: time)
        store.failTransactions(transactions, with: code)
        return store
    }
}

/// A committer over a store, with its deliveries and its reports of trouble.
private struct ResultCommitterFixture {
    let committer: ResultCommitter
    private let finished: Stream<Refresh>
    private let failures: Stream<Void>

    init(
        _ store: any Store,
        time: ManualTime,
        spill: (any ResultSpill)? = nil,
        read: @escaping ResultCommitter.Read = { _, claim in RefreshResult(claim: claim, answer: .withoutRefreshToken) }
    ) {
        let finished = Stream<Refresh>()
        let failures = Stream<Void>()
        self.finished = finished
        self.failures = failures
        committer = ResultCommitter(
            store: store,
            rules: RefreshRules(maxRate: 200),
            time: time,
            random: SeededRandom(seed: 1),
            spill: spill,
            read: read,
            onFailure: { _, _ in failures.add(()) },
            deliver: { batch, _ in
                for one in batch {
                    // Deliveries that did not wait for each other would be interleaved.
                    await Task.yield()
                    finished.add(one)
                }
            }
        )
    }

    func waitForFailure() async { await failures.next() }

    func nextFinished() async -> Refresh { await finished.next() }
}

/// Values from any thread, one by one.
private final class Stream<Value: Sendable>: Sendable {
    private let values: AsyncStream<Value>
    private let source: AsyncStream<Value>.Continuation

    init() {
        (values, source) = AsyncStream.makeStream()
    }

    func add(_ value: Value) { source.yield(value) }

    func next() async -> Value {
        var values = values.makeAsyncIterator()
        guard let value = await values.next() else { preconditionFailure("the stream does not end") }
        return value
    }
}
