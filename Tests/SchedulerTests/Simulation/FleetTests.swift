import Base
import Foundation
import Testing

@testable import Scheduler
@testable import Storage

/// The schedule of a large fleet.
///
/// `make fleet` prints the table of docs/scaling.md.
@Suite("The schedule of a large fleet", .timeLimit(.minutes(10)))
struct FleetTests {
    private static let isMeasured = ProcessInfo.processInfo.environment["FLEET"] != nil

    @Test("A worker reads its share of the index ahead, sends on time, and holds no more than a few seconds of it")
    func share() throws {
        var fleet = try FleetSimulation(grants: 1_000_000, workers: 2)
        try fleet.run(for: .seconds(20))
        #expect((3_200...3_400).contains(fleet.sent.count), "\(fleet.sent.count) of 167 a second")
        let gathering = Int(RefreshEngineState.gatheringTime.wholeMilliseconds)
        #expect(fleet.late(0.99) <= gathering + 25, "\(fleet.late(0.99)) ms")
        #expect(fleet.mostInWindow <= 167 * 8 && fleet.mostQueued <= 100)
        #expect(fleet.overdue <= 10)
    }

    @Test("A worker that cannot keep up holds a bounded part of its backlog")
    func overload() throws {
        var fleet = try FleetSimulation(grants: 100_000_000, workers: 1)
        try fleet.run(for: .seconds(3))
        #expect(fleet.overdue > 50_000)
        #expect(fleet.mostInWindow <= RefreshEngineState.maximumWindow + RefreshEngineState.pageSize)
        #expect(fleet.mostQueued <= RefreshEngineState.maximumQueue && fleet.mostInFlight <= 512)
    }

    @Test("The table of docs/scaling.md", .enabled(if: isMeasured, "make fleet"))
    func table() throws {
        print(
            "| grants in the database | workers | due/s, each | entries read/s, each | in memory | MB |",
            terminator: ""
        )
        print(" p50 ms | p99 ms | most ms | overdue |\n|" + String(repeating: "---:|", count: 10))
        let bytesBefore = try FleetSimulation.residentBytes()
        for (grants, workers) in [
            (1_000_000, 1), (2_000_000, 2), (5_000_000, 1), (10_000_000, 1), (10_000_000, 2), (100_000_000, 20),
            (100_000_000, 1),
        ] {
            var fleet = try FleetSimulation(grants: grants, workers: workers)
            try fleet.run(for: .seconds(60))
            print(try fleet.row(bytesBefore: bytesBefore))
        }
    }
}

/// The decisions of one worker (``RefreshEngineState``) about a made-up due index, by clocks that only it moves.
///
/// Due times are spread evenly over 3,000 s. The other workers are always on time.
private struct FleetSimulation {
    /// The time from a request to its answer.
    private static let latency: Duration = .milliseconds(200)
    /// The time of each claim, page and commit.
    private static let storeCall: Duration = .milliseconds(2)
    private static let period = 3_000

    private let grants: Int
    private let workers: Int
    private var fixture: StateFixture
    private let start: Timestamp
    /// The numbers of grants that were refreshed, from `firstOpen` on.
    private var refreshed: Set<Int> = []
    private var firstOpen = 1
    private var answers: [(at: BootInstant, refreshes: [Refresh])] = []
    private var span: Duration = .zero
    private var entriesRead = 0

    /// The milliseconds from due to sent of each request.
    private(set) var sent: [Int64] = []
    private(set) var mostInWindow = 0
    private(set) var mostQueued = 0
    private(set) var mostInFlight = 0

    init(grants: Int, workers: Int) throws {
        self.grants = grants
        self.workers = workers
        fixture = StateFixture(maxRate: Double(grants / Self.period) * 1.25)
        start = fixture.conditions.now
        _ = fixture.state.change(share: WorkPartition(rank: 0, count: workers), at: fixture.conditions.instant)
    }

    mutating func run(for span: Duration) throws {
        self.span = span
        let end = fixture.conditions.instant + span
        while fixture.conditions.instant < end {
            try takeAnswers()
            if fixture.state.isScanDue(at: fixture.conditions.instant) {
                fixture.state.beginScan(at: fixture.conditions.instant)
                if fixture.state.beginReading("client") { try read(after: nil) }
                try readOn()
            } else if !fixture.state.clientsToReadOn.isEmpty {
                try readOn()
            }
            fixture.state.queueDueGrants(under: fixture.conditions)
            mostQueued = max(mostQueued, fixture.state.queued.count)
            let wait = try dispatch()
            let next = fixture.state.nextIteration(after: wait, under: fixture.conditions) - fixture.conditions.now
            let untilAnswer = answers.first.map { $0.at - fixture.conditions.instant } ?? next
            fixture.pass(max(.milliseconds(1), min(next, untilAnswer)))
        }
    }

    // MARK: The store

    private func dueAt(_ number: Int) -> Timestamp {
        start + .milliseconds(number * Self.period * 1_000 / grants)
    }

    private func isOwn(_ number: Int) -> Bool { number % workers == 0 }

    private mutating func call() throws {
        fixture.pass(Self.storeCall)
        try takeAnswers()
    }

    private mutating func read(after cursor: DueEntry?) throws {
        let horizon = fixture.conditions.now + fixture.state.configuration.scanAhead
        let doneByOthers = fixture.conditions.now + .milliseconds(-300)
        let isDone = { [refreshed, workers] (number: Int, due: Timestamp) in
            refreshed.contains(number) || number % workers != 0 && due <= doneByOthers
        }
        while isDone(firstOpen, dueAt(firstOpen)) {
            refreshed.remove(firstOpen)
            firstOpen += 1
        }
        var page: [DueEntry] = []
        var number = max(firstOpen, cursor.map { Int($0.id.rawValue) + 1 } ?? 0)
        while page.count < RefreshEngineState.pageSize {
            let due = dueAt(number)
            guard due <= horizon else { break }
            if !isDone(number, due) { page.append(DueEntry(dueAt: due, id: GrantID(rawValue: Int64(number)))) }
            number += 1
        }
        entriesRead += page.count
        try call()
        fixture.state.pageArrived(page, of: "client", after: cursor, under: fixture.conditions)
        mostInWindow = max(mostInWindow, fixture.state.window.count)
    }

    private mutating func readOn() throws {
        while let cursor = fixture.state.cursorToReadOn("client") { try read(after: cursor) }
    }

    // MARK: Google

    private mutating func dispatch() throws -> Duration? {
        var round = fixture.state.beginRound()
        while true {
            switch fixture.state.nextStep(of: &round, under: fixture.conditions) {
            case .claim(let ids, _, _):
                let request = fixture.state.reserve(ids, dueBy: fixture.conditions.now).request
                mostInFlight = max(mostInFlight, fixture.state.slots.count)
                try call()
                let refreshes = try fixture.claimed(request).sent
                for id in ids {
                    sent.append((fixture.conditions.now - dueAt(Int(id.rawValue))).wholeMilliseconds)
                    refreshed.insert(Int(id.rawValue))
                }
                answers.append((fixture.conditions.instant + Self.latency + Self.storeCall, refreshes))
            case .askForProbe: preconditionFailure("no answer opens the breaker")
            case .end(let wait): return wait
            }
        }
    }

    private mutating func takeAnswers() throws {
        let arrived = answers.prefix { $0.at <= fixture.conditions.instant }
        answers.removeFirst(arrived.count)
        for (_, refreshes) in arrived { _ = try fixture.commit(refreshes, latency: Self.latency) }
    }

    // MARK: Figures

    func late(_ part: Double) -> Int64 { sent.sorted()[Int(Double(sent.count - 1) * part)] }

    /// The number of this worker's grants that were due a second ago and are not sent.
    var overdue: Int {
        let elapsed = (fixture.conditions.now - start).wholeMilliseconds - 1_000
        return max(0, Int(elapsed) * grants / (Self.period * 1_000) / workers - sent.count)
    }

    func row(bytesBefore: Int) throws -> String {
        let seconds = Int(span.inSeconds)
        let megabytes = max(0, try Self.residentBytes() - bytesBefore) / 1_000_000
        let fields = [
            grants, workers, grants / Self.period / workers, entriesRead / seconds,
            mostInWindow + mostQueued + mostInFlight, megabytes, Int(late(0.5)),
            Int(late(0.99)), Int(late(1)), overdue,
        ]
        return "| " + fields.map { $0.formatted(.number.locale(Locale(identifier: "en_US"))) }.joined(separator: " | ")
            + " |"
    }

    static func residentBytes() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return (Int(fields[1]) ?? 0) * 4_096
    }
}
