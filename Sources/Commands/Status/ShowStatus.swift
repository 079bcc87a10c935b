import Base
import Crypto
import Scheduler
import Status
import Storage
import Telemetry
import Worker

/// `status`: reports on everything that is stored, with or without a running worker.
struct ShowStatus {
    static let command = Command(
        words: ["status"],
        summary: "show the number of grants by state, the due ones, and problems",
        discussion: """
            Reads the database, with or without a running worker. It shows the grants by state, due and overdue, the \
            breaker and the pace of each client id, the live workers and their keys, and refresh tokens that are about \
            to expire. docs/status.md describes each field of the JSON. The exit code is 0 if all is well, 1 if \
            something needs attention, and 2 if the status is unknown. Each concern names a section of docs/runbook.md.
            """,
        options: [
            .toggle("json", "one JSON object instead of text"),
            .toggle(
                "watch",
                """
                every two seconds until Ctrl-C: redraws on a terminal, writes one line for each change elsewhere; \
                with --json one object after each change
                """
            ),
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            ("refresh-worker status", "a report for people"),
            ("refresh-worker status --json | jq -r .verdict", "ok or attention, for a monitor"),
            ("refresh-worker status --watch", "during an upgrade or an outage"),
        ],
        exitCodes: [.success, .concerns, .cannotTell, .usage, .configuration],
        run: { try await ShowStatus(watches: $0.has("watch")).run(in: $1) }
    )

    private static let watchInterval: Duration = .seconds(2)
    /// Moves to the upper left corner; see https://man7.org/linux/man-pages/man4/console_codes.4.html.
    private static let home = "\u{1b}[H"
    private static let eraseRestOfLine = "\u{1b}[K"
    private static let eraseRestOfScreen = "\u{1b}[J"

    let watches: Bool

    func run(in context: CommandContext) async throws -> ExitCode {
        do {
            if watches { return try await watch(in: context) }
            let report = try await context.statusReport()
            Output.standard.write(context.printsJSON ? report.json.text + "\n" : report.text)
            return report.judgement.isWell ? .success : .concerns
        } catch {
            // A monitor must not take a status that is unknown for a good or a bad one.
            throw CommandFailure(.cannotTell, CommandFailure(error).message)
        }
    }

    /// `--watch`: redraws the report on a terminal; writes one line for each change elsewhere.
    ///
    /// A database that is out of reach for a while does not end it. One that cannot be opened at the start, or must
    /// not be used any more, ends it with the exit code of an unknown status.
    private func watch(in context: CommandContext) async throws -> ExitCode {
        try await context.withExistingStore(for: .reading) { store in
            var former: StatusFacts?
            var formerProblem: String?
            while true {
                do {
                    let report = try await context.statusReport(from: store)
                    let facts = StatusFacts(report)
                    if redraws(in: context) {
                        Output.standard.write(Self.redrawn(report.text))
                    } else {
                        let changes = facts.changes(since: formerProblem == nil ? former : nil)
                        Self.lines(of: changes, report, asJSON: context.printsJSON).forEach(Output.standard.line)
                    }
                    (former, formerProblem) = (facts, nil)
                } catch let error as StoreError {
                    let failure = CommandFailure(error)
                    guard [.inputOutput, .leftForLater].contains(failure.exitCode) else { throw failure }
                    if redraws(in: context) {
                        Output.standard.write(Self.redrawn("\(context.time.now.iso8601Seconds)  \(failure.message)\n"))
                    } else if formerProblem != failure.message {
                        Output.error.line("refresh-worker: \(failure.message)")
                    }
                    formerProblem = failure.message
                }
                try await context.time.sleep(for: Self.watchInterval)
            }
        }
    }

    private func redraws(in context: CommandContext) -> Bool { Output.standard.isTerminal && !context.printsJSON }

    /// Returns the text to write over the former one: erasing the screen first would make it flicker.
    static func redrawn(_ text: String) -> String {
        home + text.replacing("\n", with: eraseRestOfLine + "\n") + eraseRestOfScreen
    }

    /// Returns a line for each changed fact; in JSON the whole report, if there is a change.
    static func lines(of changes: [StatusFacts.Fact], _ report: StatusReport, asJSON isJSON: Bool) -> [String] {
        guard !isJSON else { return changes.isEmpty ? [] : [report.json.text] }
        return changes.map { "\(report.at.iso8601Seconds)  \($0.name): \($0.text)" }
    }
}

extension CommandContext {
    /// The functions with which a daemon reports its status.
    var statusReporter: StatusReporter {
        StatusReporter(
            json: { store, process in
                try await statusReport(from: store, of: process).json.text
            },
            observe: { store in try await statusReport(from: store, includesSlowParts: false).observations }
        )
    }

    func statusReport() async throws -> StatusReport {
        var report = try await withExistingStore(for: .reading) { store in try await statusReport(from: store) }
        // Closing the connections has written the log back into the file. The file may be opened only now: see
        // `FileStatus`.
        if let path = configuration.database.file {
            let header = try await BlockingCallQueue.files.run { DatabaseHeader.read(path) }
            report.database.schema = header.flatMap { $0.schema > 0 ? $0.schema : nil }
        }
        return report
    }

    /// Returns the report from an open store, without the database's header, which needs a closed one.
    ///
    /// `includesSlowParts` is `false` for a report that is made often: it leaves out the number of tokens for each key,
    /// whose count takes seconds with ten million grants, and the facts of a server, which need another connection.
    func statusReport(
        from store: any Store,
        of process: ProcessObservations = ProcessObservations(),
        includesSlowParts: Bool = true
    ) async throws -> StatusReport {
        let now = time.now
        let leaseTime = try await store.leaseTime()
        // The health of a client id stays when its last grant has moved or ended.
        let inUse = Set(try await store.clientsWithDueTimes())
        let configured = Set(configuration.clientIDs)
        let stored = try await store.clientHealth().filter { inUse.union(configured).contains($0.key) }
        let clientIDs = configured.union(stored.keys).sorted()
        var process = process
        let published = try await PublishedAlarms.read(from: store, at: now)
        process.alarms += published.filter { alarm in
            !process.alarms.contains { $0.kind == alarm.kind && $0.client == alarm.client }
        }
        return StatusReport(
            at: now,
            statistics: try await store.grantStatistics(at: now),
            clients: clientIDs.map { id in
                StatusReport.Client(
                    id: id,
                    health: ClientHealth(stored: stored[id], epoch: leaseTime.epoch),
                    maxRate: configuration.maxRate,
                    at: leaseTime.instant,
                    wallClock: now
                )
            },
            clientsInUse: inUse,
            workers: try await store.liveWorkers(),
            lastPassAt: try await LastPass.read(from: store),
            keysInUse: includesSlowParts ? try await store.keysInUse() : [:],
            keyRing: readableKeyRing(),
            database: try await databaseFacts(asksServer: includesSlowParts),
            spilledFiles: await spilledFiles(),
            pendingNotices: configuration.noticeURL == nil ? nil : try await store.pendingNotices(),
            securityEvents: configuration.publicListener == nil ? nil : try await ReceivedSecurityEvents(from: store),
            process: process
        )
    }

    /// Returns the facts about the database; those about a server need a connection of their own.
    private func databaseFacts(asksServer: Bool) async throws -> StatusReport.Database {
        let name = configuration.database.description
        switch configuration.database {
        case .file(let path):
            return StatusReport.Database(
                path: name,
                bytes: try FileStatus.of(path)?.size ?? 0,
                freeSpace: try FileStatus.freeSpace(at: FileStatus.folder(of: path)),
                faultyLibrary: SQLiteStore.libraryHasLogResetBug ? SQLiteStore.libraryVersion : nil
            )
        case .server(let address):
            guard asksServer else { return StatusReport.Database(path: name, bytes: 0) }
            let facts = try await ServerFacts.read(address, time: time)
            return StatusReport.Database(path: name, bytes: facts.bytes, schema: facts.schema)
        }
    }

    private func spilledFiles() async -> [SpilledFile]? {
        let location = spillLocation(of: configuration.database)
        do {
            return try await BlockingCallQueue.files.run { try SpilledFile.list(in: location) }
        } catch {
            diagnostics.warning("the spill files cannot be listed", ["folder": location.folder, "error": "\(error)"])
            return nil
        }
    }

    /// Returns the ring's keys, or `nil`: the rest of the report is useful without them and says that they are missing.
    private func readableKeyRing() -> KeyRingSummary? {
        do {
            return KeyRingSummary(try openVault().ring.current)
        } catch {
            diagnostics.debug("the key ring cannot be read", ["error": "\(error)"])
            return nil
        }
    }
}
