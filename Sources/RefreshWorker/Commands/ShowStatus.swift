import Base
import Crypto
import Glibc
import Scheduler
import Status
import Storage

extension Command {
    /// `status`: reports on everything that is stored, with or without a running worker.
    static let showStatus = Command(
        words: ["status"],
        summary: "show the number of grants by state, the due ones, and problems",
        discussion: """
            Reads the database, with or without a running worker. It shows the grants by state, due and overdue, the \
            breaker and the pace of each client id, the live workers and their keys, and refresh tokens that are about \
            to expire. docs/status.md describes each field of the JSON. The exit code is 0 if all is well, 4 if \
            users are without tokens now, 3 if they will be soon, 1 if a person should look tomorrow, and 2 if the \
            status is unknown. Each concern names a section of docs/runbook.md.
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
            "refresh-worker status": "a report for people",
            "refresh-worker status --json | jq -r .verdict": "ok, now, soon or tomorrow, for a monitor",
            "refresh-worker status --watch": "during an upgrade or an outage",
        ],
        exitCodes: [.success, .lookTomorrow, .cannotTell, .soonWithoutTokens, .withoutTokens, .usage, .configuration]
    ) { arguments, context in
        do {
            if arguments.has("watch") { return try await watch(in: context) }
            let snapshot = try await context.statusSnapshot()
            let text = context.printsJSON ? snapshot.json.text + "\n" : snapshot.text
            Output.standard.write(DocumentFolder.current.located(text))
            return ExitCode(snapshot.findings.severity)
        } catch {
            // A monitor must not take a status that is unknown for a good or a bad one.
            throw CommandError(.cannotTell, CommandError(error).message)
        }
    }

    private static let watchInterval: Duration = .seconds(2)

    /// `--watch`: redraws the report on a terminal, and elsewhere writes one line for each change.
    ///
    /// A database that is out of reach for a while does not end it. One that cannot be opened at the start, or must
    /// not be used any more, ends it with the exit code of an unknown status.
    private static func watch(in context: CommandContext) async throws -> ExitCode {
        try await context.withExistingStore(for: .reading) { store in
            let redraws = Output.standard.isTerminal && !context.printsJSON
            var former: StatusSnapshot?
            var formerProblem: String?
            while true {
                do {
                    let snapshot = try await context.statusSnapshot(from: store)
                    if redraws {
                        Output.standard.write(DocumentFolder.current.located(snapshot.text).redrawn)
                    } else {
                        let changes = snapshot.changes(since: formerProblem == nil ? former : nil)
                        for line in snapshot.lines(of: changes, asJSON: context.printsJSON) {
                            Output.standard.line(DocumentFolder.current.located(line))
                        }
                    }
                    (former, formerProblem) = (snapshot, nil)
                } catch let error as StoreError {
                    let failure = CommandError(error)
                    guard [.inputOutput, .leftForLater].contains(failure.exitCode) else { throw failure }
                    if redraws {
                        Output.standard.write("\(context.time.now.iso8601Seconds)  \(failure.message)\n".redrawn)
                    } else if formerProblem != failure.message {
                        Output.error.line("refresh-worker: \(failure.message)")
                    }
                    formerProblem = failure.message
                }
                try await context.time.sleep(for: watchInterval)
            }
        }
    }
}

extension CommandContext {
    func statusSnapshot() async throws -> StatusSnapshot {
        var snapshot = try await withExistingStore(for: .reading) { store in try await statusSnapshot(from: store) }
        // Closing the connections has written the log back into the file. The file can be opened only now: see
        // `FileStatus`.
        if let path = configuration.database.file {
            let schema = try await BlockingCallQueue.files.run { FileStatus.schema(ofDatabaseFile: path) }
            snapshot.schema = schema.flatMap { $0 > 0 ? $0 : nil }
        }
        return snapshot
    }
}

extension ExitCode {
    /// The exit code of `status`.
    init(_ severity: Severity?) {
        self =
            switch severity {
            case nil: .success
            case .tomorrow: .lookTomorrow
            case .soon: .soonWithoutTokens
            case .now: .withoutTokens
            }
    }
}

extension FileStatus {
    /// Returns the version of this program's tables (`PRAGMA user_version`), 0 before they exist, or `nil` if the file
    /// cannot be read or is not a database (https://sqlite.org/fileformat.html#the_database_header).
    ///
    /// Call it only while this process has no connection to the file: see ``FileStatus``. The newest pages can still be
    /// in the log next to it. Then the header is older.
    static func schema(ofDatabaseFile path: String) -> Int? {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        var header = [UInt8](repeating: 0, count: 100)
        let count = unsafe Glibc.read(descriptor, &header, header.count)
        guard count == header.count, header.starts(with: Array("SQLite format 3\0".utf8)) else { return nil }
        return header[60..<64].reduce(0) { $0 << 8 | Int($1) }
    }
}

extension String {
    /// The text to write over a former one on a terminal: erasing the screen first would make it flicker.
    ///
    /// https://man7.org/linux/man-pages/man4/console_codes.4.html has the codes to move to the upper left corner, and
    /// to erase the rest of a line and of the screen.
    var redrawn: String { "\u{1b}[H" + replacing("\n", with: "\u{1b}[K\n") + "\u{1b}[J" }
}

/// The snapshot for people.
extension StatusSnapshot {
    var text: String {
        var text = ""
        /// Writes facts under one title, which precedes the first of them.
        func write(_ title: String, _ facts: [String], otherwise none: String = "") {
            for (index, fact) in (facts.isEmpty ? [none] : facts).enumerated() {
                text += (index == 0 ? title : "").padding(to: 11) + fact + "\n"
            }
        }
        func oldest(for span: Duration?) -> String { span.map { ", the oldest for \($0.inTwoUnits)" } ?? "" }
        let states = statesInUse.isEmpty ? "" : ": " + statesInUse.joined(separator: ", ")
        write("at", [at.iso8601Seconds])
        func counted(_ text: String) -> String { areGrantsCounted ? text : "not counted in time" }
        write("grants", [counted("\(grants.grants)\(states)")])
        let reasons = grants.retryingByReason.map { "\($0.count) \($0.reason)" }
        if !reasons.isEmpty { write("retrying", [reasons.joined(separator: ", ")]) }
        let expired = "\(grants.expired.count) connected grants without a valid access token"
        write("expired", [counted(expired + oldest(for: grants.expired.oldest.map { at - $0 }))])
        write("due", [counted("\(grants.due)\(oldest(for: grants.lateness(at: at)))")])
        write("ending", [counted("\(grants.refreshTokensEnding) refresh tokens within three days")])
        write("idle", [counted("\(grants.idle) connected grants without a refresh for five months")])
        write(
            "clients",
            clients.flatMap { [$0.sentence] + $0.failureSentences(at: at) },
            otherwise: "none configured and none known yet"
        )
        let workers = (workers ?? []).map { worker in
            let keys = worker.keyIDs.map(\.description).joined(separator: " ")
            return "\(worker.id) holds keys \(keys), seals with \(worker.sealingKeyID)"
        }
        write("workers", workers, otherwise: "none running")
        let keys = keyCounts.map { key in
            let tokens = key.tokens?.counted("token") ?? "tokens that were not counted in time"
            return "\(key.id) \(key.isInRing == false ? "IS NOT IN THE RING, " : "")seals \(tokens)"
        }
        write("keys", keys, otherwise: "nothing is sealed yet")
        let schema = schema.map { ", schema \($0)" } ?? ""
        write("database", ["\(database), \(databaseBytes.inBytes)\(schema)"])
        let files = spilledFiles?.map { file in
            let count = file.results.map { "\($0)" } ?? "unknown"
            return "\(file.path)\(file.isSetAside ? ", SET ASIDE" : ""), results: \(count)"
        }
        write("spilled", files ?? ["cannot be listed"], otherwise: "no results wait in files")
        let findings = findings
        write("verdict", [findings.verdict + (findings.isEmpty ? "" : ":")])
        for finding in findings {
            // An effect is below its cause.
            let indent = finding.cause == nil ? "" : "    "
            text += "\(indent)  - \(finding.severity): \(finding.text)\n"
            text += "\(indent)    more: \(finding.command); \(finding.runbook)\n"
        }
        return text
    }

    /// Returns a line for each fact that differs from a former snapshot, or for all of them if there is none.
    ///
    /// The facts are those that do not change by the passing of time alone.
    func changes(since former: StatusSnapshot?) -> [String] {
        let (facts, old) = (facts, former?.facts ?? [])
        let changed = facts.filter { fact in !old.contains { $0 == fact } }
        let gone = old.filter { fact in !facts.contains { $0.name == fact.name } }.map { (name: $0.name, text: "gone") }
        return (changed + gone).map { "\(at.iso8601Seconds)  \($0.name): \($0.text)" }
    }

    /// Returns a line for each change, or in JSON the whole snapshot if there is a change.
    func lines(of changes: [String], asJSON isJSON: Bool) -> [String] {
        isJSON && !changes.isEmpty ? [json.text] : changes
    }

    private var facts: [(name: String, text: String)] {
        let states = statesInUse.isEmpty ? "none" : statesInUse.joined(separator: ", ")
        var facts = [(name: "grants", text: areGrantsCounted ? states : "not counted in time")]
        for client in clients {
            let reason = client.breakerReason.map { " (\($0))" } ?? ""
            let wave = client.isWave ? ", in a wave of refusals" : ""
            facts.append(("client \(DisplayedText(client.id))", "breaker \(client.breaker.name)\(reason)\(wave)"))
        }
        let workers = (workers ?? []).map(\.id).sorted().joined(separator: ", ")
        facts.append(("workers", workers.isEmpty ? "none running" : workers))
        let findings = findings
        let kinds = findings.map(\.kind).joined(separator: ", ")
        facts.append(("verdict", findings.verdict + (kinds.isEmpty ? "" : ": \(kinds)")))
        return facts
    }

    /// The states that any grant is in, each with its number.
    private var statesInUse: [String] {
        GrantState.allCases.compactMap { state in
            grants.byState[state].flatMap { $0 > 0 ? "\($0) \(state.rawValue)" : nil }
        }
    }
}

extension ClientStatus {
    /// What the endpoint answered instead of a token, a line for each kind.
    fileprivate func failureSentences(at now: Timestamp) -> [String] {
        failures.map { failure in
            let last = "the last \((now - failure.lastAt).inTwoUnits) ago"
            return "  \(failure.name): \(failure.count) since \(failure.since.iso8601Seconds), \(last)"
        }
    }

    fileprivate var sentence: String {
        let reason = breakerReason.map { " (\($0))" } ?? ""
        let probe = nextProbe.map { ", next probe in \($0.inTwoUnits)" } ?? ""
        let rate = (ceiling * 10).rounded() / 10
        let pace = pause.map { "paused for \($0.inTwoUnits)" } ?? "at most \(rate) requests a second"
        let wave = isWave ? ", in a wave of refusals" : ""
        let slowed = isSlowed ? ", slowed" : ""
        return "\(DisplayedText(id)): breaker \(breaker.name)\(reason)\(probe), \(pace)\(slowed)\(wave)"
    }
}
