import Base
import Storage
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
