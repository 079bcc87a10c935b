import Base
package import Storage
package import Worker

/// `users import FILE`: imports users that another system has kept.
extension CommandContext {
    package func importUsers(_ options: UserImportOptions) async throws -> ExitCode {
        let file = try InputFile(path: options.file)
        let store = try await openStore(forDryRun: options.isDryRun)
        let progress = ImportProgress(of: "users", output: .error, time: time)
        let report = { (line: String) in progress.writeLine("refresh-worker: \(line)") }
        var users = UserImport(
            store: store,
            map: options.map,
            replacesExisting: options.replacesExisting,
            isDryRun: options.isDryRun,
            time: time,
            report: report
        )
        var failure: CommandFailure?
        do {
            try await Self.feed(&users, from: file, progress: progress)
        } catch {
            failure = CommandFailure(error)
        }
        await store.close()
        users.tally.summaryOfReasons.forEach(report)
        if !users.ignored.isEmpty {
            let names = users.ignored.sorted().map { "\(DisplayedText($0))" }.joined(separator: ", ")
            report("fields that were not imported: \(names)")
        }
        report(users.tally.userSentence(isDryRun: options.isDryRun))
        if options.isJSON { Output.standard.line(users.tally.json.bytes) }
        return try Self.exitCode(after: users.tally, failure)
    }

    /// Opens the database; a dry run does not create one and uses an empty store instead.
    package func openStore(forDryRun isDryRun: Bool) async throws -> any AccountStore {
        guard isDryRun else { return try await openStore() }
        return try await openStoreIfThere(for: .reading) ?? InMemoryStore(timeSource: time, random: random)
    }
}
