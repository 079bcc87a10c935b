import Crypto
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("A store is copied completely", .timeLimit(.minutes(10)))
struct StoreCopyTests {
    @Test("Every kind of record arrives, and comes back, with the same checksum", arguments: StorePair.allCases)
    func thereAndBack(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            try await source.fill(users: 25)
            let target = try await stores.open("target")
            let there = try await StoreCopy(from: source, to: target, at: "elsewhere", pageSize: 7, pause: noPause)
                .run()
            for kind in ArchiveRecord.Kind.allCases { #expect(there.counts[kind, default: 0] > 0, "\(kind)") }
            #expect(there.counts[.grant] == 25)
            #expect(there.copiedNow == there.counts.values.reduce(0, +))
            #expect(try await target.isReceiving == false)

            let third = try await stores.open("third")
            let back = try await StoreCopy(from: target, to: third, at: "elsewhere", pause: noPause).run()
            #expect(back.digest == there.digest)
            #expect(try await third.grant(ofUser: "user 3") == source.grant(ofUser: "user 3"))
            for store in [source, target, third] { await store.close() }
        }
    }

    @Test("Every table is copied, or known to belong to its own database")
    func tables() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            try await SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot").close()
            let connection = try SQLiteConnection(path: path, timeout: .zero)
            let query = SQLQuery("tables", sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
            let tables = try connection.rows(query) { (row: inout SQLiteRow) throws(StoreError) in row.text() }
            let copied = ["users", "grants", "grant_events", "sessions", "clients", "identifiers", "notices"]
            // The accounts follow from the users.
            let own = ["accounts", "grant_counts", "meta", "workers"]
            #expect(Set(tables) == Set(copied + own))
            #expect(copied.count == ArchiveRecord.Kind.allCases.count)
        }
    }

    @Test("A lease stays behind, and so does the right to deliver notices", arguments: StorePair.allCases)
    func leases(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            let unleased = try await source.grant(GrantID(rawValue: 1))
            let claimed = try await source.claim(
                [GrantID(rawValue: 1)],
                dueBy: nil,
                owner: "worker",
                for: .seconds(3600)
            )
            #expect(claimed.count == 1)
            #expect(try await source.claimNotices(owner: "worker", for: .seconds(3600)))
            let waited = Mutex<Duration>(.zero)
            let copy = StoreCopy(
                from: source,
                to: target,
                at: "elsewhere",
                pause: { (span: Duration) async throws in
                    let mark = try await source.movedTo
                    #expect(mark != nil, "no worker claims while the leases end")
                    waited.withLock { $0 += span }
                }
            )
            _ = try await copy.run()
            #expect(waited.withLock { $0 } == .seconds(30), "at most the duration of a worker's lease")
            #expect(try await target.grant(GrantID(rawValue: 1)) == unleased)
            #expect(try await target.claimNotices(owner: "another", for: .seconds(3600)))
            for store in [source, target] { await store.close() }
        }
    }

    @Test("A notice keeps its trace", arguments: StorePair.allCases)
    func traces(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            _ = try await StoreCopy(from: source, to: target, at: "elsewhere", pause: noPause).run()
            let copied = try await target.dueNotices(at: start + .seconds(200), atMost: 10)
            #expect(copied.map(\.userID) == ["user 1", "user 2"])
            #expect(copied.map(\.trace) == [Sample.trace, nil])
            for store in [source, target] { await store.close() }
        }
    }

    @Test("New rows in the copy come after the copied ones", arguments: StorePair.allCases)
    func nextNumbers(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 3)
            _ = try await StoreCopy(from: source, to: target, at: "elsewhere", pause: noPause).run()
            let events = try await target.count(of: .event)
            let last = try await target.lastRecord(of: .notice)?.key
            try await target.change(GrantID(rawValue: 3)) { grant in grant.disconnect(reason: .userRequest, at: start) }
            #expect(try await target.count(of: .event) == events + 1)
            let next = try await target.lastRecord(of: .notice)?.key
            guard case .integer(let former?) = last?.last, case .integer(let latest?) = next?.last else {
                Issue.record("notices do not have numbers")
                return
            }
            #expect(last?.first == next?.first && latest == former + 1)
            for store in [source, target] { await store.close() }
        }
    }

    @Test("A copy that ended after any page continues from there", arguments: StorePair.allCases, 1...9)
    func resumed(pair: StorePair, pages: Int) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 5)
            let received = Atomic(0)
            let first = Task {
                try await StoreCopy(from: source, to: target, at: "elsewhere", pageSize: 2, pause: noPause) {
                    progress in
                    guard case .copied = progress, received.add(1, ordering: .relaxed).newValue == pages else { return }
                    withUnsafeCurrentTask { $0?.cancel() }
                }.run()
            }
            await #expect(throws: CancellationError.self) { _ = try await first.value }
            await target.close()

            let again = try await stores.open("target")
            #expect(try await again.isReceiving)
            let all = try await source.allRecords()
            let there = try await again.allRecords()
            #expect(!there.isEmpty && there.count < all.count)
            let summary = try await StoreCopy(from: source, to: again, at: "elsewhere", pageSize: 2, pause: noPause)
                .run()
            #expect(summary.copiedNow == all.count - there.count)
            #expect(try await again.allRecords() == all)
            #expect(try await again.isReceiving == false)
            for store in [source, again] { await store.close() }
        }
    }

    @Test("A target that holds anything is left as it is", arguments: StorePair.allCases, [0, 3])
    func occupied(pair: StorePair, users: Int) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            try await target.fill(users: users)
            if users == 0 {
                try await target.transact { _ = try $0.recordOnce("seen", at: start) }
            }
            let before = try await target.allRecords()
            await #expect(throws: StoreCopyError.occupied) {
                _ = try await StoreCopy(from: source, to: target, at: "elsewhere", pause: noPause).run()
            }
            await #expect(throws: StoreError.self) { try await target.beginReceiving() }
            #expect(try await target.allRecords() == before)
            #expect(try await target.isReceiving == false)
            for store in [source, target] { await store.close() }
        }
    }

    @Test("A part of a different copy is detected at once", arguments: StorePair.allCases)
    func foreign(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            try await target.beginReceiving()
            let someoneElse = User.table.values(of: User(id: "someone else", createdAt: start))
            try await target.receive([ArchiveRecord(kind: .user, values: someoneElse)])
            await #expect {
                _ = try await StoreCopy(from: source, to: target, at: "elsewhere", pause: noPause).run()
            } throws: { error in
                guard case .differs(.user, _, _) = error as? StoreCopyError else { return false }
                return true
            }
            #expect(try await target.count(of: .user) == 1)
            #expect(try await target.isReceiving)
            for store in [source, target] { await store.close() }
        }
    }

    @Test(
        "Nothing is copied while a worker is live on either side",
        arguments: StorePair.allCases,
        [StoreCopy.Side.source, .target]
    )
    func workers(pair: StorePair, side: StoreCopy.Side) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            let key = try #require(KeyID(Sample.key))
            let report = WorkerReport(id: "w1", keyIDs: [key], sealingKeyID: key)
            _ = try await (side == .source ? source : target).report(report)
            await #expect(throws: StoreCopyError.workers(side, ["w1"])) {
                _ = try await StoreCopy(from: source, to: target, at: "elsewhere", pause: noPause).run()
            }
            #expect(try await target.count(of: .user) == 0)
            for store in [source, target] { await store.close() }
        }
    }

    @Test("A copied store knows its target, refuses workers, and can be copied again", arguments: StorePair.allCases)
    func moved(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            #expect(try await source.movedTo == nil)
            let first = try await StoreCopy(from: source, to: target, at: "the new place", pause: noPause).run()
            #expect(try await source.movedTo == "the new place")
            #expect(try await target.movedTo == nil)

            let key = try #require(KeyID(Sample.key))
            let report = WorkerReport(id: "w1", keyIDs: [key], sealingKeyID: key)
            let refusal = await #expect(throws: StoreError.self) { _ = try await source.report(report) }
            #expect(refusal?.code == .moved && refusal?.message.contains("was moved to the new place") == true)
            #expect(try await source.liveWorkers().isEmpty)
            #expect(try await target.report(report) == [report])

            let third = try await stores.open("third")
            #expect(
                try await StoreCopy(from: source, to: third, at: "a third place", pause: noPause).run().digest
                    == first.digest
            )
            #expect(try await source.movedTo == "a third place")
            for store in [source, target, third] { await store.close() }
        }
    }

    @Test("A worker that starts during the comparison is found, and the source stays in use")
    func notMoved() async throws {
        try await StorePair.with(.fileToFile) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            let keys = "'\(Sample.key)', '\(Sample.key)'"
            let report = SQLQuery("report", sql: "INSERT OR REPLACE INTO workers VALUES ('late', ?, ?, \(keys), 1)")
            let copy = StoreCopy(from: source, to: target, at: "the new place", pause: noPause) { progress in
                guard case .compared = progress else { return }
                do throws(StoreError) {
                    try SQLiteConnection(path: stores.folder.path("target"), timeout: .seconds(10)).run(report) {
                        $0.bind("boot of target")
                        $0.bind(ManualTime().sinceBoot.milliseconds)
                    }
                } catch {
                    Issue.record(error)
                }
            }
            await #expect(throws: StoreCopyError.workers(.target, ["late"])) { _ = try await copy.run() }
            #expect(try await source.movedTo == nil)
            #expect(try await target.isReceiving)
            for store in [source, target] { await store.close() }
        }
    }

    @Test("A copy whose last step fails leaves the source out of use, and is finished by the same copy")
    func lastStepFails() async throws {
        try await StorePair.with(.fileToFile) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 2)
            let refuse = SQLQuery(
                "refuse the end of receiving",
                sql: """
                    CREATE TRIGGER refuse BEFORE DELETE ON meta WHEN OLD.key = 'receiving_copy'
                    BEGIN SELECT raise(ABORT, 'refused'); END
                    """
            )
            let allow = SQLQuery("allow the end of receiving", sql: "DROP TRIGGER refuse")
            @Sendable func run(_ query: SQLQuery) {
                do throws(StoreError) {
                    try SQLiteConnection(path: stores.folder.path("target"), timeout: .seconds(10)).run(query) { _ in }
                } catch {
                    Issue.record(error)
                }
            }
            let isFirst = Atomic(true)
            let copy = StoreCopy(from: source, to: target, at: "the new place", pause: noPause) { progress in
                guard case .compared = progress, isFirst.exchange(false, ordering: .relaxed) else { return }
                run(refuse)
            }
            await #expect(throws: StoreError.self) { _ = try await copy.run() }
            #expect(try await source.movedTo == "the new place")
            #expect(try await target.isReceiving)
            run(allow)
            _ = try await StoreCopy(from: source, to: target, at: "the new place", pause: noPause).run()
            #expect(try await target.isReceiving == false)
            for store in [source, target] { await store.close() }
        }
    }

    @Test("An empty store that was moved accepts a copy, and can be used again", arguments: StorePair.allCases)
    func movedBack(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            _ = try await StoreCopy(from: source, to: target, at: "the new place", pause: noPause).run()
            _ = try await StoreCopy(from: target, to: source, at: "the old place", pause: noPause).run()
            #expect(try await source.movedTo == nil)
            #expect(try await target.movedTo == "the old place")
            for store in [source, target] { await store.close() }
        }
    }

    @Test("A row that changes during the copy is found, and the copy stays unfinished", arguments: StorePair.allCases)
    func damagedOnTheWay(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            try await source.fill(users: 4)
            try await target.beginReceiving()
            let users = try await source.records(of: .user, after: nil, atMost: 100)
            try await target.receive(users)
            var grants = try await source.records(of: .grant, after: nil, atMost: 100)
            let scope = try #require(Grant.table.columns.firstIndex { $0.name == "scope" })
            var values = grants[2].values
            values[scope] = .text("openid emaiL")
            grants[2] = ArchiveRecord(kind: .grant, values: values)
            try await target.receive(grants)
            await #expect {
                _ = try await StoreCopy(from: source, to: target, at: "elsewhere", pause: noPause).run()
            } throws: { error in
                guard case .differs(.grant, _, _) = error as? StoreCopyError else { return false }
                return true
            }
            #expect(try await target.isReceiving)
            for store in [source, target] { await store.close() }
        }
    }
}

/// The kinds of the source and the target of a copy.
enum StorePair: CaseIterable, CustomTestStringConvertible, Sendable {
    case fileToFile
    case fileToServer
    case serverToFile

    /// With a server only if `scripts/test` started one.
    static var allCases: [StorePair] {
        PostgresServer.url == nil ? [.fileToFile] : [.fileToFile, .fileToServer, .serverToFile]
    }

    var testDescription: String {
        switch self {
        case .fileToFile: "SQLite to SQLite"
        case .fileToServer: "SQLite to PostgreSQL"
        case .serverToFile: "PostgreSQL to SQLite"
        }
    }

    /// Opens the stores of one test by their names; `source` and `target` have the pair's kinds, any other is a file.
    struct Stores: Sendable {
        let folder: TemporaryFolder
        let server: Secret?
        let serverName: String

        func open(_ name: String) async throws -> any Store {
            if let server, name == serverName { return try await PostgresStore.open(url: server, keepsNotices: true) }
            let path = folder.path(name)
            return try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot of \(name)", keepsNotices: true)
        }
    }

    static func with(_ pair: StorePair, _ body: (Stores) async throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            let serverName = pair == .serverToFile ? "source" : "target"
            guard pair != .fileToFile else {
                return try await body(Stores(folder: folder, server: nil, serverName: serverName))
            }
            try await PostgresServer.withReusedDatabase { server in
                try await body(Stores(folder: folder, server: server, serverName: serverName))
            }
        }
    }
}

extension Store {
    /// Stores users with grants, histories and sessions, one of them deleted, the health of a client, security events,
    /// and pending and finished notices.
    fileprivate func fill(users count: Int) async throws {
        guard count > 0 else { return }
        for number in 1...Int64(count) {
            let owner = Grant.Owner(googleUserID: "g\(number)", email: "Ü\(number)@example.com", emailIsVerified: true)
            let grant = try Sample.grant(number, owner: owner, refreshToken: number % 3 == 0 ? nil : "refresh")
            let session = Sample.session(UInt8(number), user: grant.userID)
            try await transact { transaction in
                try transaction.insert(grant)
                var user = try #require(try transaction.user(grant.userID))
                user.signIn(as: owner, picture: nil, at: start)
                try transaction.update(user)
                try transaction.insert(session)
                var ended = grant
                for event in ended.disconnect(reason: .invalidGrant, at: start) + grant.connectionEvents {
                    try transaction.record(event)
                }
                if number % 2 == 0 { try transaction.update(ended) }
                _ = try transaction.recordOnce("event \(number)", at: start)
                try transaction.setClientHealth(Array("{\"n\":\(number)}".utf8), of: grant.clientID)
            }
        }
        try await TraceContext.$current.withValue(Sample.trace) {
            _ = try await transact { try AccountDeletion.delete(user: "user 1", in: $0, at: start) }
        }
        try await noticeAccepted(notice(Notice.Key(userID: "user 1", number: 1)), at: start + .seconds(1))
        try await noticePostponed(notice(Notice.Key(userID: "user 2", number: 1)), until: start + .seconds(100))
    }

    fileprivate func allRecords() async throws -> [ArchiveRecord] {
        var all: [ArchiveRecord] = []
        for kind in ArchiveRecord.Kind.allCases { all += try await records(of: kind, after: nil, atMost: 1000) }
        return all
    }
}

extension Grant {
    /// An event that makes no notice.
    fileprivate var connectionEvents: [GrantEvent] {
        [
            GrantEvent(
                grant: id,
                at: createdAt,
                kind: .connected,
                from: nil,
                to: .active,
                reason: .none,
                generation: generation
            )
        ]
    }
}

/// Fails the test: these copies find no lease to wait for.
let noPause: @Sendable (Duration) async throws -> Void = { span in
    Issue.record("a pause of \(span)")
}
