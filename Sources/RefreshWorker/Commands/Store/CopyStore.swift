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
            A killed worker counts as live for \(WorkerReport.lifetime.inWholeUnits). The source is marked before the first record is read, \
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
    ) { arguments, context, output in
        let source = try location("from", in: arguments, context: context)
        let target = try location("to", in: arguments, context: context)
        guard source != target else {
            throw CommandError(.usage, "--from and --to name the same database; name the one to copy to with --to")
        }
        guard let from = try await context.open(source, time: source.clock, makesTables: false)
        else {
            throw CommandError(missing: source)
        }
        let summary = try await from.closing {
            if try await from.isReceiving { throw CommandError(unfinished: source) }
            // Spilled results of the source are stored there while it is still in use.
            if try await from.movedTo == nil {
                try await SpillRecovery(context).recoverAll(into: from, of: source, use: .changing)
            }
            guard let to = try await context.open(target, time: target.clock, makesTables: true)
            else {
                preconditionFailure("a database that can be created is never missing")
            }
            return try await to.closing {
                try await copy(
                    from: CopySide(store: from, location: source),
                    to: CopySide(store: to, location: target),
                    in: context
                )
            }
        }
        output.answer(summary.text(from: source, to: target)) { summary.write(from: source, to: target, into: &$0) }
        return .success
    }

    private static func copy(
        from source: CopySide,
        to target: CopySide,
        in context: CommandContext
    ) async throws -> StoreCopy.Summary {
        let title = target.location.title
        let markedByThisCopy = [title, StoreCopy.unfinished(title)]
        if let newLocation = try await source.store.movedTo, !markedByThisCopy.contains(newLocation) {
            context.diagnostics.warning(
                "the database was moved before; changes made there since then are not copied",
                ["moved_to": newLocation]
            )
        }
        let progress = TerminalProgress()
        defer { progress.clear() }
        let copying = Task {
            try await StoreCopy(
                from: source.store,
                to: target.store,
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
            throw CommandError(failure, from: source.location, to: target.location)
        } catch is CancellationError {
            throw CommandError(
                .leftForLater,
                "the copy was stopped; \(source.location) can be used as before, and the same command continues the copy"
            )
        }
    }

    /// Reads a place: a path, an address or `url-file:FILE`.
    private static func location(
        _ option: String,
        in arguments: CommandArguments,
        context: CommandContext
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

/// A database that is copied, or into which it is copied.
private struct CopySide {
    let store: any Store
    let location: DatabaseLocation
}

extension DatabaseLocation {
    /// The name in a form that is valid from any folder, for users of a copied database.
    fileprivate var title: String {
        switch self {
        case .file(let path): "the SQLite file \(PathResolver.absolute(path))"
        case .server(let address): "PostgreSQL at \(address.url)"
        }
    }
}
