import Base
import Crypto
private import Glibc
import Storage
private import Synchronization
package import Worker

/// `grants import FILE`: imports grants that were kept elsewhere.
extension CommandContext {
    package func importGrants(from path: String, replacesExisting: Bool, isDryRun: Bool, isJSON: Bool) async throws
        -> ExitCode
    {
        let vault = try openVault()
        let file = try InputFile(path: path)
        let store = try await openStore(forDryRun: isDryRun)
        let heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: workerName,
            diagnostics: diagnostics
        )
        try await heartbeat.report()
        let reporting = Task { await heartbeat.run(by: time) {} }
        let progress = ImportProgress(output: .error, time: time)
        var grants = GrantImport(
            reader: GrantReader(clientIDs: configuration.clientIDs),
            writer: ImportedGrantWriter(
                store: store,
                vault: vault,
                time: time,
                random: random,
                existing: replacesExisting ? .replace : .keep,
                isDryRun: isDryRun
            ),
            time: time,
            report: { progress.writeLine("refresh-worker: \($0)") }
        )
        var failure: CommandFailure?
        do {
            try await Self.feed(&grants, from: file, progress: progress)
        } catch {
            failure = CommandFailure(error)
        }
        reporting.cancel()
        await reporting.value
        await heartbeat.leave()
        await store.close()
        for line in grants.tally.summaryOfReasons { progress.writeLine("refresh-worker: \(line)") }
        progress.writeLine("refresh-worker: \(grants.tally.sentence(isDryRun: isDryRun))")
        if isJSON { Output.standard.line(grants.tally.json.bytes) }
        return try Self.exitCode(after: grants.tally, failure)
    }

    /// Returns the exit code of any import; a failure says that the records before it are stored.
    static func exitCode(after tally: ImportTally, _ failure: CommandFailure?) throws -> ExitCode {
        if let failure {
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
        return tally.bad == 0 ? .success : .badData
    }

    /// Feeds a file to any import and shows the progress.
    static func feed(
        _ records: inout some RecordImport,
        from file: InputFile,
        progress: ImportProgress
    ) async throws {
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
    var batch: [(line: Int, reading: Result<Imported, ImportProblem>)] = []
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
