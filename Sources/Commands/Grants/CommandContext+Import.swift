import Base
import Crypto
private import Glibc
import Storage
private import Synchronization
import Telemetry
package import Worker

/// `grants import FILE`: imports grants that were kept elsewhere.
extension CommandContext {
    package func importGrants(_ options: GrantImportOptions) async throws -> ExitCode {
        let vault = try openVault()
        let file = try InputFile(path: options.file)
        let store = try await openStore(forDryRun: options.isDryRun)
        let heartbeat = store.map {
            WorkerHeartbeat(store: $0, ring: vault.ring, workerName: workerName, diagnostics: diagnostics)
        }
        try await heartbeat?.report()
        let reporting = Task { await heartbeat?.run(by: time) {} }
        var writer = ImportedGrantWriter(
            store: store,
            vault: vault,
            time: time,
            random: random,
            existing: options.replacesExisting ? .replace : .keep,
            isDryRun: options.isDryRun
        )
        let run = ImportRun(
            file: file,
            progress: ImportProgress(of: options.prefix == nil ? "grants" : "secrets", output: .error, time: time),
            isDryRun: options.isDryRun,
            isJSON: options.isJSON
        ) {
            reporting.cancel()
            await reporting.value
            await heartbeat?.leave()
            await store?.close()
        }
        guard let prefix = options.prefix else {
            let reader = GrantReader(clientIDs: configuration.clientIDs)
            return try await run.perform(GrantImport(reader: reader, writer: writer, time: time, report: run.report))
        }
        if options.replacesExisting { writer.existing = .replaceOlder }
        let reportsDetails = configuration.logLevel >= .info
        return try await run.perform(
            SecretsManagerImport(
                prefix: prefix,
                clientIDs: configuration.clientIDs,
                writer: writer,
                time: time,
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
    /// The size of a regular file in bytes; `nil` for pipes and terminals.
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

    /// The fraction of the file that was read, between 0 and 1; `nil` if its size is unknown.
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
    private static let clearLine = "\r\u{1b}[K"

    private let noun: String
    private let output: Output
    private let time: any TimeSource
    private let started: BootInstant
    private var drawnAt: BootInstant?

    /// Creates the progress of reading `noun`, such as `grants`.
    init(of noun: String = "grants", output: Output, time: any TimeSource) {
        self.noun = noun
        self.output = output
        self.time = time
        started = time.sinceBoot
    }

    /// Writes a permanent line above the progress.
    func writeLine(_ line: String) {
        clear()
        output.line(line)
    }

    /// Shows the progress, with the fraction of the input that was read, if its size is known.
    func show(_ tally: ImportTally, done fraction: Double?) {
        let now = time.sinceBoot
        guard output.isTerminal, drawnAt.map({ now - $0 >= Self.interval }) ?? true else { return }
        drawnAt = now
        output.write(Self.clearLine + Self.text(tally, of: noun, done: fraction, elapsed: now - started))
    }

    /// Erases the progress from the terminal.
    func clear() {
        guard drawnAt != nil else { return }
        drawnAt = nil
        output.write(Self.clearLine)
    }

    static func text(_ tally: ImportTally, of noun: String, done fraction: Double?, elapsed: Duration) -> String {
        let rate = elapsed > .zero ? Int(Double(tally.read) / elapsed.inSeconds) : 0
        let text = "\(tally.read) \(noun) read, \(tally.bad) bad, \(rate)/s"
        guard let fraction, fraction > 0, fraction < 1 else { return text }
        let rest: Duration = .seconds(elapsed.inSeconds * (1 - fraction) / fraction)
        return "\(text), \(Int(fraction * 100)) %, \(rest.inTwoUnits) left"
    }
}
