import Base
import Crypto
private import Glibc
import Storage
private import Synchronization
import Telemetry
import Worker

extension Command {
    private static let secretsManager = "aws-secrets-manager"
    /// The default prefix of the names of secrets, before the user's id.
    static let defaultPrefix = "gmail/user/"

    /// `grants import FILE`: imports grants that were kept elsewhere.
    static let importGrants = Command(
        words: ["grants", "import"],
        summary: "import grants from a file of JSON, also from the output of aws secretsmanager",
        discussion: """
            Each line is a JSON object with user_id and the fields of a stored grant: access_token, refresh_token, \
            expires_at, expires_in, scope, token_type, created_at, google_user_id, google_email, google_name, \
            google_verified_email, and optionally client_id, refresh_token_expires_at, state, reason and since. It \
            also reads objects over several lines, one array around all objects, rows of a DynamoDB export with these \
            fields, and the output of aws secretsmanager get-secret-value for a secret gmail/user/USER. A short line is enough:

            {"user_id": "alice", "refresh_token": "1//0..."}

            Invalid lines are reported with their number and skipped; valid ones are stored. An existing grant is \
            kept, and reported, unless --replace is given. A grant that its user ended, here or at Google, is replaced \
            only by a line with a new refresh token. A refresh token that its user replaced or ended here does not \
            come back. An interrupted import can be started again. The profile shows the name in google_name while the \
            user has none.

            With --from aws-secrets-manager the file is the output of aws secretsmanager batch-get-secret-value or \
            get-secret-value. Each secret whose name begins with the prefix is a grant, and the rest of its name is \
            the user. The client id comes from the secret Google-OAuth-Client-ID before them, unless exactly one is \
            configured here. With --replace a stored grant is replaced only where the secret is newer: where its \
            created_at, or the date of its version where that is earlier, is later than the stored grant's arrival, \
            its last rotation and its end. The script import-from-aws reads the secrets and imports them \
            (docs/moving.md).
            """,
        operands: [.file("the file to read; - is standard input")],
        options: [
            .toggle("replace", "replace grants that are already stored"),
            OptionSpecification(
                "from",
                .choice([secretsManager], as: "SOURCE"),
                "the form of the file: aws-secrets-manager for what the aws program prints"
            ),
            OptionSpecification(
                "prefix",
                .text(as: "PREFIX", maximumLength: 512, signs: "/_+=.@-"),
                "the prefix of the names, before the user. Default: \(defaultPrefix)"
            ),
            .toggle(
                "dry-run",
                "store nothing and say what would be done; with --from and --log-level info for each user"
            ),
            .jsonSummary,
        ],
        settings: [.config, .database, .keyFile, .clientID, .logLevel],
        examples: [
            ("refresh-worker grants import grants.jsonl", "from a file"),
            (
                "ssh old-host export-grants | refresh-worker grants import -",
                "from another machine, without a copy on disk"
            ),
            (
                """
                aws secretsmanager get-secret-value --secret-id gmail/user/alice | refresh-worker grants import -
                """,
                "one grant, with Amazon's own program"
            ),
            (
                """
                aws secretsmanager batch-get-secret-value --secret-id-list gmail/user/alice gmail/user/bob | \
                refresh-worker grants import - --from aws-secrets-manager --dry-run
                """,
                "show what would be imported from AWS Secrets Manager"
            ),
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable),
        check: { arguments throws(UsageError) in
            guard arguments.has("from") || !arguments.has("prefix") else {
                throw arguments.refusal(["--prefix has a meaning only with --from"])
            }
        }
    ) { arguments, context in
        let (replaces, isDryRun) = (arguments.has("replace"), arguments.has("dry-run"))
        let isFromAWS = arguments.has("from")
        let vault = try context.openVault()
        let input = try InputFile(path: arguments.operand)
        let store = try await context.openStore(forDryRun: isDryRun)
        let heartbeat = store.map { context.heartbeat(in: $0, of: vault) }
        try await heartbeat?.report()
        let reporting = Task { await heartbeat?.run(by: context.time) {} }
        let writer = ImportedGrantWriter(
            store: store,
            vault: vault,
            time: context.time,
            random: context.random,
            existing: replaces ? (isFromAWS ? .replaceOlder : .replace) : .keep,
            isDryRun: isDryRun
        )
        let run = ImportRun(
            file: input,
            progress: ImportProgress(of: isFromAWS ? "secrets" : "grants", time: context.time),
            isDryRun: isDryRun,
            isJSON: context.printsJSON
        ) {
            reporting.cancel()
            await reporting.value
            await heartbeat?.leave()
            await store?.close()
        }
        guard isFromAWS else {
            let reader = GrantReader(clientIDs: context.configuration.clientIDs)
            return try await run.perform(
                GrantImport(reader: reader, writer: writer, time: context.time, report: run.report)
            )
        }
        let reportsDetails = context.configuration.logLevel >= .info
        return try await run.perform(
            SecretsManagerImport(
                prefix: arguments["prefix"] ?? defaultPrefix,
                clientIDs: context.configuration.clientIDs,
                writer: writer,
                time: context.time,
                report: run.report,
                detail: { if reportsDetails { run.report($0) } }
            )
        )
    }
}

/// One run of any import, from its file to the exit code.
struct ImportRun {
    let file: InputFile
    let progress: ImportProgress
    let isDryRun: Bool
    let isJSON: Bool
    /// Ends what the import used, before the results are reported.
    let close: () async -> Void

    func report(_ line: String) { progress.writeLine("refresh-worker: \(line)") }

    func perform(_ start: some RecordImport) async throws -> ExitCode {
        var records = start
        var failure: CommandFailure?
        do {
            try await feed(&records)
        } catch {
            failure = CommandFailure(error)
        }
        await close()
        let tally = records.tally
        (tally.summaryOfReasons + records.remarks + [records.sentence(isDryRun: isDryRun)]).forEach(report)
        if isJSON { Output.standard.line(records.json.bytes) }
        guard let failure else { return tally.bad == 0 ? .success : .badData }
        guard tally.read > 0 else { throw failure }
        throw CommandFailure(
            failure.exitCode,
            """
            \(failure.message)
            the import stopped there; the records counted above are stored; start the same import again to \
            continue: it keeps stored records
            """
        )
    }

    private func feed(_ records: inout some RecordImport) async throws {
        while true {
            let chunk: [UInt8]
            do {
                chunk = try await file.next()
            } catch {
                // The complete records before the failure are good.
                try await records.finish()
                throw error
            }
            guard !chunk.isEmpty else { break }
            try await records.feed(chunk)
            progress.show(records.tally, done: file.fractionRead)
        }
        try await records.finish()
    }
}

/// The part of an import's input that is not stored yet.
struct ImportInput<Imported> {
    var splitter = RecordSplitter()
    var batch: [ImportReading<Imported>] = []
}

/// A file, or standard input, read in pieces from beginning to end.
final class InputFile: Sendable {
    private static let pieceSize = 256 * 1024

    private let descriptor: Int32
    /// The name in messages.
    private let name: String
    private let isStandardInput: Bool
    private let queue = BlockingCallQueue(label: "refresh-worker.input")
    /// The size of a regular file in bytes, or `nil` for pipes and terminals.
    private let size: Int?
    private let bytesRead = Atomic(0)

    /// Opens the file; `-` is standard input.
    ///
    /// It blocks while a named pipe does not have a writer, which is harmless this early.
    init(path: String) throws(CommandFailure) {
        isStandardInput = path == "-"
        name = isStandardInput ? "standard input" : "\(DisplayedText(path))"
        descriptor = isStandardInput ? STDIN_FILENO : unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(name, call: "open", code: errno) }
        var status = stat()
        let isRegular = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        size = isRegular ? Int(status.st_size) : nil
    }

    deinit {
        if !isStandardInput { close(descriptor) }
    }

    /// The fraction of the file that was read, between 0 and 1, or `nil` if its size is unknown.
    var fractionRead: Double? {
        guard let size, size > 0 else { return nil }
        // The file may grow while it is read.
        return min(1, Double(bytesRead.load(ordering: .relaxed)) / Double(size))
    }

    /// Returns the next bytes; empty at the end.
    func next() async throws -> [UInt8] {
        let piece = try await queue.run { try self.read() }
        bytesRead.add(piece.count, ordering: .relaxed)
        return piece
    }

    private func read() throws(CommandFailure) -> [UInt8] {
        while true {
            var code: Int32 = 0
            let piece = unsafe [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { buffer, filled in
                let count = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                code = count < 0 ? errno : 0
                filled = max(0, count)
            }
            if code == 0 { return piece }
            guard code == EINTR else { throw Self.failure(name, call: "read", code: code) }
        }
    }

    private static func failure(_ name: String, call: String, code: Int32) -> CommandFailure {
        let reason = SystemCallError(call: call, code: code)
        return CommandFailure(.inputUnreadable, "\(name) cannot be read: \(reason)")
    }
}

/// The progress of an import, as one line of a terminal that is redrawn a few times a second; otherwise silent.
final class ImportProgress {
    private static let interval: Duration = .milliseconds(200)

    private let noun: String
    private let line = TerminalProgress(to: .error)
    private let time: any TimeSource
    private let started: BootInstant
    private var drawnAt: BootInstant?

    /// Creates the progress of reading `noun`, such as `grants`.
    init(of noun: String, time: any TimeSource) {
        self.noun = noun
        self.time = time
        started = time.sinceBoot
    }

    /// Writes a permanent line above the progress.
    func writeLine(_ text: String) {
        line.clear()
        drawnAt = nil
        Output.error.line(text)
    }

    /// Shows the progress, with the fraction of the input that was read, if its size is known.
    func show(_ tally: ImportTally, done fraction: Double?) {
        let now = time.sinceBoot
        guard drawnAt.map({ now - $0 >= Self.interval }) ?? true else { return }
        drawnAt = now
        line.show(Self.text(tally, of: noun, done: fraction, elapsed: now - started))
    }

    static func text(_ tally: ImportTally, of noun: String, done fraction: Double?, elapsed: Duration) -> String {
        let rate = elapsed > .zero ? Int(Double(tally.read) / elapsed.inSeconds) : 0
        let text = "\(tally.read) \(noun) read, \(tally.bad) bad, \(rate)/s"
        guard let fraction, fraction > 0, fraction < 1 else { return text }
        let rest: Duration = .seconds(elapsed.inSeconds * (1 - fraction) / fraction)
        return "\(text), \(Int(fraction * 100)) %, \(rest.inTwoUnits) left"
    }
}
