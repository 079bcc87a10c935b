import Base
import Storage
import Telemetry

extension Command {
    private static let need = ": a database to copy from, and one to copy to"

    /// `store copy`: copies everything to another database.
    static let copyStore = Command(
        words: ["store", "copy"],
        summary: "copy a database into an empty one, of either kind",
        discussion: """
            Copies users, grants with their histories, sessions, the health of each client, notices, and the \
            identifiers of security events and of used or ended tokens, unchanged: tokens stay sealed, so the new \
            database needs the same key ring. Then it reads both databases and compares them by number and checksum. \
            Leases are not copied.

            When both are found to be equal, the source is marked as moved: workers and commands that change data \
            refuse it and name the new place, so that a forgotten cron job does not spend refresh tokens there. \
            status, keys list, grants list, show and export still read it, and so do backup and store copy. To go \
            back, copy the new database into an empty one; the old content of the source can be copied again too.

            Stop every worker and every cron job of both databases first; the copy does not begin while one is alive. \
            A killed worker counts as live for 30 seconds. The source is marked before the first record is read, \
            so that a worker that was suspended cannot continue with it: it stops with code 78 and saves its answers \
            in a spill file (docs/operate.md#spill-files). An interrupted copy continues when the same command is run \
            again. Until it is complete no worker starts on the new database, and after kill -9 none on the old one either.

            An address with a password cannot be an argument, because every user of the machine can read those. Put \
            the password into a password file that PGPASSFILE names, or the address into a file of mode 0600 and write \
            url-file:FILE.
            """,
        options: [
            OptionSpecification("from", .database, "the database to copy", need: need),
            OptionSpecification("to", .database, "the database to copy to, which must be empty", need: need),
            .jsonObject,
        ],
        settings: [.config, .logLevel],
        examples: [
            """
            refresh-worker store copy --from /var/lib/refresh-worker/grants.sqlite \
            --to url-file:/etc/refresh-worker/database-url
            """: "from a file to PostgreSQL",
            "refresh-worker store copy --from postgres:///grants --to ./grants.sqlite": "and back",
        ],
        exitCodes: .ofDatabase(.badData, .cannotCreate)
    ) { arguments, context in
        let source = try location("from", in: arguments, context)
        let target = try location("to", in: arguments, context)
        guard source != target else {
            throw CommandError(.usage, "--from and --to name the same database; name the one to copy to with --to")
        }
        guard let from = try await context.open(source, time: CommandContext.clock(of: source), makesTables: false)
        else {
            throw CommandError(missing: source)
        }
        let summary = try await CommandContext.using(from) {
            if try await from.isReceiving { throw CommandError(unfinished: source) }
            // Spilled results of the source are stored there while it is still in use.
            if try await from.movedTo == nil {
                try await context.recoverResults(into: from, of: source, use: .changing)
            }
            guard let to = try await context.open(target, time: CommandContext.clock(of: target), makesTables: true)
            else {
                preconditionFailure("a database that can be created is never missing")
            }
            return try await CommandContext.using(to) { try await copy(from, source, into: to, target, in: context) }
        }
        context.answer(summary.text(from: source, to: target)) { summary.write(from: source, to: target, into: &$0) }
        return .success
    }

    private static func copy(
        _ from: any Store,
        _ source: DatabaseLocation,
        into to: any Store,
        _ target: DatabaseLocation,
        in context: CommandContext
    ) async throws -> StoreCopy.Summary {
        let title = target.title
        if let newLocation = try await from.movedTo, newLocation != title, newLocation != StoreCopy.unfinished(title) {
            context.diagnostics.warning(
                "the database was moved before; changes made there since then are not copied",
                ["moved_to": newLocation]
            )
        }
        let progress = TerminalProgress()
        defer { progress.clear() }
        let copying = Task {
            try await StoreCopy(
                from: from,
                to: to,
                at: title,
                pause: { [time = context.time] in try await time.sleep(for: $0) },
                report: { progress.show($0.line) }
            )
            .run()
        }
        // A cancelled copy leaves the source unchanged and usable.
        let signals = await SignalStream.start()
        let stopping = Task { for await signal in signals.signals where signal != .hangUp { copying.cancel() } }
        defer {
            stopping.cancel()
            signals.stop()
        }
        do {
            return try await copying.value
        } catch let failure as StoreCopyError {
            throw CommandError(failure, from: source, to: target)
        } catch is CancellationError {
            throw CommandError(
                .leftForLater,
                "the copy was stopped; \(source) can be used as before, and the same command continues the copy"
            )
        }
    }

    /// Reads a place: a path, an address or `url-file:FILE`.
    private static func location(
        _ option: String,
        in arguments: CommandArguments,
        _ context: CommandContext
    ) throws(CommandError) -> DatabaseLocation {
        let (flag, text) = ("--\(option)", arguments.needed(option))
        do throws(InputError) {
            try InputText.checkText(text)
            return try DatabaseLocation.read(text, isArgument: true, files: context.inputs.files)
        } catch {
            throw CommandError(.configuration, "\(flag): \(error.message)")
        }
    }
}

/// The messages of `store copy`: its progress, its summary and its problems.
extension StoreCopy.Progress {
    var line: String {
        switch self {
        case .waiting(let rest):
            "waiting for leases of workers that do not answer, \(Int(rest.inSeconds.rounded(.up))) s"
        case .copied(let kind, let count, let all):
            "copied \(count) of \(all) \(kind.plural)\(Self.percentage(count, all))"
        case .compared(let kind, let count, let all):
            "compared \(count) of \(all) \(kind.plural)\(Self.percentage(count, all))"
        }
    }

    private static func percentage(_ count: Int, _ all: Int) -> String { all > 0 ? " (\(count * 100 / all) %)" : "" }
}

extension StoreCopy.Summary {
    func text(from source: DatabaseLocation, to target: DatabaseLocation) -> String {
        let kinds = ArchiveRecord.Kind.allCases.map { "\(counts[$0] ?? 0) \($0.plural)" }
        let all = counts.values.reduce(0, +)
        let earlier = all > copiedNow ? " (\(all - copiedNow) of them before this was interrupted)" : ""
        return """
            copied \(source) to \(target): \(all) records\(earlier)
            \(kinds.joined(separator: ", "))
            both databases have the same content: SHA-256 \(digest)
            Next: set REFRESH_WORKER_DATABASE to the new database on every machine, give each the same key ring, run \
            refresh-worker doctor, then start the workers. The old database is marked as moved, so that workers and commands that \
            change anything refuse it; keep it, with a backup of the key ring, until the workers run without problems.
            """
    }

    /// Adds the summary for programs.
    func write(from source: DatabaseLocation, to target: DatabaseLocation, into line: inout JSONLine) {
        line.field("from", "\(source)")
        line.field("to", "\(target)")
        line.field("records", counts.values.reduce(0, +))
        line.field("copied_now", copiedNow)
        line.object("records_by_kind") { object in
            for kind in ArchiveRecord.Kind.allCases { object.field(kind.rawValue, counts[kind] ?? 0) }
        }
        line.field("sha256", "\(digest)")
    }
}

extension DatabaseLocation {
    /// The name in a form that is valid from any folder, for users of a copied database.
    fileprivate var title: String {
        switch self {
        case .file(let path): "the SQLite file \(FileStatus.absolute(path))"
        case .server(let address): "PostgreSQL at \(address.url)"
        }
    }
}

extension ArchiveRecord.Kind {
    var plural: String {
        switch self {
        case .user: "users"
        case .grant: "grants"
        case .event: "events"
        case .session: "sessions"
        case .clientHealth: "clients"
        case .securityEvent: "identifiers of security events and of used or ended tokens"
        case .notice: "notices"
        }
    }
}

extension CommandError {
    init(_ failure: StoreCopyError, from source: DatabaseLocation, to target: DatabaseLocation) {
        switch failure {
        case .workers(let side, let names):
            let location = side == .source ? source : target
            self.init(
                .leftForLater,
                """
                workers use \(location) (\(names.joined(separator: ", "))): stop them, and cron, on every machine; a killed \
                worker counts as live for 30 seconds
                """
            )
        case .occupied:
            self.init(
                .cannotCreate,
                "\(target) contains data already and was not changed: name an empty database with --to"
            )
        case .differs(let kind, let sourceDigest, let copyDigest):
            self.init(
                .badData,
                """
                the \(kind.plural) of \(target) are not those of \(source) (\(copyDigest.count) records, SHA-256 \
                \(copyDigest); \(sourceDigest.count) records, SHA-256 \(sourceDigest)): it was begun as a copy of something else, or a \
                worker has used one of them since
                \(target) cannot be used by a worker in this state. To copy again, empty it first: \(Self.emptying(target))
                """
            )
        }
    }

    private static func emptying(_ target: DatabaseLocation) -> String {
        switch target {
        case .file(let path):
            "rm -f -- \(["", "-wal", "-shm", ".reserve"].map { (path + $0).shellWord }.joined(separator: " ")) \(path.shellWord)-leases-*"
        case .server(let address): "psql \(address.url.shellWord) -c 'DROP SCHEMA refresh_worker CASCADE'"
        }
    }
}
