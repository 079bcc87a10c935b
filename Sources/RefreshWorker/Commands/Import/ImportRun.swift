import Base
import Storage

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
        var failure: CommandError?
        do {
            try await feed(&records)
        } catch let error as StoreError {
            failure = CommandError(await error.confirmed)
        } catch {
            failure = CommandError(error)
        }
        await close()
        let tally = records.tally
        (tally.summaryOfReasons + records.remarks + [records.sentence(isDryRun: isDryRun)]).forEach(report)
        if isJSON { Output.standard.line(records.json.bytes) }
        guard let failure else { return tally.bad == 0 ? .success : .badData }
        guard tally.read > 0 else { throw failure }
        throw CommandError(
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
