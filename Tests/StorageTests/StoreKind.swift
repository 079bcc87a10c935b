import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Storage

/// The stores that the conformance suite covers.
enum StoreKind: CaseIterable, CustomTestStringConvertible, Sendable {
    case sqlite
    case postgres

    /// PostgreSQL only if `scripts/test` started a server; without one, its own suites report that they are skipped.
    static var allCases: [StoreKind] {
        PostgresServer.url == nil ? [.sqlite] : [.sqlite, .postgres]
    }

    var testDescription: String {
        switch self {
        case .sqlite: "SQLite"
        case .postgres: "PostgreSQL"
        }
    }

    /// Calls `body` with a new, empty store whose clocks move only when the test moves them.
    ///
    /// SQLite takes plain refreshes only in ``TestStore``, by which the engine's tests see what PostgreSQL does.
    ///
    /// `clock` takes the place of the clock that times leases.
    func withStore(
        keepsNotices: Bool = false,
        isSharedByWorkers: Bool = false,
        clock: LateReading? = nil,
        _ body: (any Store, ManualTime) async throws -> Void
    ) async throws {
        let time = clock?.time ?? ManualTime()
        switch self {
        case .sqlite where isSharedByWorkers:
            let store = try TestStore(time: time, keepsNotices: keepsNotices, isSharedByWorkers: true)
            try await body(store, time)
            await store.close()
        case .sqlite:
            try await TemporaryFolder.with { folder in
                let store = try SQLiteStore(
                    path: folder.path("grants.db"),
                    timeSource: clock ?? time,
                    bootID: "this boot",
                    keepsNotices: keepsNotices
                )
                try await body(store, time)
                await store.close()
            }
        case .postgres:
            try await PostgresServer.withReusedDatabase { url in
                let store = try await PostgresStore.open(
                    url: url,
                    timeout: .seconds(60),
                    keepsNotices: keepsNotices,
                    leaseClock: clock ?? time
                )
                try await body(store, time)
                await store.close()
            }
        }
    }
}

/// The boot clock of a process that is stopped right after it has read the clock: its next reading is late by a span.
final class LateReading: TimeSource {
    let time = ManualTime()
    private let lag = Mutex<Duration>(.zero)

    var now: Timestamp { time.now }
    var sinceBoot: BootInstant {
        let late = lag.withLock { lag in
            defer { lag = .zero }
            return lag
        }
        return time.sinceBoot - late
    }

    func sleep(for span: Duration) async throws(CancellationError) { try await time.sleep(for: span) }

    /// Makes the next reading that of a process which then stands still for `span`.
    func stop(for span: Duration) { lag.withLock { $0 = span } }
}

extension Store {
    /// Stores grants as the app would bring them.
    func add(_ grants: [Grant]) async throws {
        try await transact { transaction in
            for grant in grants { try transaction.insert(grant) }
        }
    }

    /// Returns the due grants of all clients, up to ten of each, by due time.
    func allDue(by limit: Timestamp) async throws -> [DueEntry] {
        var due: [DueEntry] = []
        for client in try await clientsWithDueTimes() {
            due += try await self.due(ofClient: client, by: limit, after: nil, atMost: 10)
        }
        return due.sorted { ($0.dueAt, $0.id) < ($1.dueAt, $1.id) }
    }

    /// Changes one stored grant and keeps its events.
    func change(_ id: GrantID, _ body: @escaping @Sendable (inout Grant) -> [GrantEvent]) async throws {
        try await transact { transaction in
            var grant = try #require(try transaction.grant(id))
            let events = body(&grant)
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
        }
    }
}
