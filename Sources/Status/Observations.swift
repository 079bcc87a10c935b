package import Base
package import Crypto
package import Storage
package import Telemetry

/// Everything that the judgement is made from, as of one instant; the status page shows it too.
///
/// A part that was not looked at is `nil` or empty.
package struct Observations: Equatable, Sendable {
    /// The state of one client id.
    package struct Client: Equatable, Sendable {
        package var id: String
        /// The id as a sentence may show it: quoted, and without characters that disturb terminals.
        var name: String
        /// `closed`, `open` or `probing`; `nil` for a client id that only has expired grants.
        package var breaker: String?
        /// The requests per second that are allowed now.
        package var ceiling: Double?
        /// The reason why requests stopped; `nil` while they are sent.
        package var breakerReason: String?
        package var breakerSince: Timestamp?
        package var isWave = false
        /// The remaining time of a pause that the endpoint asked for.
        package var pause: Duration?
        package var isSlowed = false
        /// The time of the last successful refresh.
        package var lastSuccessAt: Timestamp?

        package init(id: String, name: String) {
            self.id = id
            self.name = name
        }
    }

    /// The key ring that a process can read, compared with the stored tokens and with the workers.
    package enum KeyRing: Equatable, Sendable {
        case unreadable
        case readable(sealingKey: KeyID, pending: KeyID?, missing: [KeyID: Int])
    }

    /// A file of results that the database has not stored.
    package struct SpilledFile: Equatable, Sendable {
        var text: String
        var since: Timestamp
        var count: Int

        package init(text: String, since: Timestamp, count: Int) {
            self.text = text
            self.since = since
            self.count = count
        }
    }

    package var at: Timestamp
    package var grants: GrantStatistics
    /// The client ids that are configured, have a health, or have expired grants.
    package var clients: [Client] = []
    /// The client ids with grants that are refreshed, or `nil` if they were not looked up.
    package var clientsInUse: Set<String>?
    /// The live workers; `nil` if they were not looked up.
    package var workers: [WorkerReport]?
    /// The time of the last `--run-once`, if a timer refreshes the grants.
    package var lastPassAt: Timestamp?
    package var keyRing: KeyRing?
    package var spilledFiles: [SpilledFile] = []
    package var canListSpilledFiles = true
    package var notices: PendingNotices?
    /// `nil` if this installation does not receive security events.
    package var securityEvents: ReceivedSecurityEvents?
    /// The version of a SQLite library with the WAL-reset bug, if the database is a file.
    package var faultySQLite: String?
    /// The free bytes on the disk of the database; `nil` for a server.
    package var freeSpace: Int64?
    package var process = ProcessObservations()

    /// Makes observations of the grants alone; by default of none, for a process that cannot count them.
    package init(
        at: Timestamp,
        grants: GrantStatistics = GrantStatistics(
            byState: [:],
            due: 0,
            oldestDueAt: nil,
            refreshTokensEnding: 0,
            idle: 0
        )
    ) {
        self.at = at
        self.grants = grants
    }
}

/// The observations that only a running worker can make about itself.
package struct ProcessObservations: Equatable, Sendable {
    /// `true` in a worker, which runs even while it cannot report that to the others.
    package var isWorker = false
    package var alarms: [CurrentAlarm] = []
    /// The code of the database's problem; `nil` if results can be stored.
    package var databaseProblem: String?
    /// The time for which results could not be stored.
    package var resultsWaiting: Duration?
    /// `true` while lines of the metrics log cannot be written.
    package var isMetricsLogFailing = false
    package var droppedLines = 0

    package init() {}
}

/// The time of the last `--run-once`, kept as a note in the store: no process is alive between two passes.
package enum LastPass {
    private static let note = "last_pass"

    package static func read(from store: any Store) async throws -> Timestamp? {
        try await store.note(note).flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }
    }

    /// Records that a pass begins.
    ///
    /// Another pass can record its own at the same time. It makes no difference which of them is kept.
    package static func record(in store: any Store, at now: Timestamp) async throws {
        _ = try await store.replaceNote(note, try await store.note(note), with: "\(now.milliseconds)")
    }
}

/// The times of the last security events that were received, kept as a note in the store.
package struct ReceivedSecurityEvents: Equatable, Sendable {
    private static let note = "security_events"
    /// Notes are written at most this often: an hour is precise enough for a limit of days.
    private static let precision: Duration = .seconds(3600)

    var lastAt: Timestamp?

    init(lastAt: Timestamp? = nil) {
        self.lastAt = lastAt
    }

    package init(from store: any Store) async throws {
        lastAt = try await store.note(Self.note).flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }
    }

    /// Records that an event, or a verification, was received.
    ///
    /// Another worker may record one at the same time; it makes no difference which of them is kept.
    package static func record(in store: any Store, at now: Timestamp) async throws {
        let former = try await store.note(note)
        if let last = former.flatMap({ Int64($0) }), now - Timestamp(milliseconds: last) < precision { return }
        _ = try await store.replaceNote(note, former, with: "\(now.milliseconds)")
    }
}

/// The functions with which a running worker reports its status: the commands have them, and the listeners use them.
package struct StatusReporter: Sendable {
    /// Returns the output of `refresh-worker status --json`.
    package let json: @Sendable (any Store, ProcessObservations) async throws -> String
    /// Returns what the database says for the judgement.
    ///
    /// It reads no whole table.
    package let observe: @Sendable (any Store) async throws -> Observations

    package init(
        json: @escaping @Sendable (any Store, ProcessObservations) async throws -> String,
        observe: @escaping @Sendable (any Store) async throws -> Observations
    ) {
        self.json = json
        self.observe = observe
    }
}
