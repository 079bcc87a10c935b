import Store

/// `users import FILE`: brings in users that were kept elsewhere.
extension Workshop {
    func importUsers(from path: String, replacesExisting: Bool) async throws -> ExitCode {
        let file = try InputFile(path: path)
        let store = try await openStore()
        let progress = ImportProgress(of: "users", output: .error, time: time)
        var users = UserImport(
            store: store,
            replacesExisting: replacesExisting,
            time: time,
            report: { progress.tell("refresh-worker: \($0)") }
        )
        var failure: CommandFailure?
        do {
            try await Self.feed(&users, from: file, progress: progress)
        } catch {
            failure = CommandFailure(error)
        }
        await store.close()
        progress.tell("refresh-worker: \(users.tally.sentence)")
        return try Self.exitCode(after: users.tally, failure)
    }
}
