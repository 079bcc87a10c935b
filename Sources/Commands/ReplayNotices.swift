import Base
import Storage
import Worker

extension Command {
    /// `notices replay`: queues notices for another delivery.
    static let replayNotices = Command(
        words: ["notices", "replay"],
        summary: "post notices again, under the same ids",
        discussion: """
            Puts the notices of the last day, or of --within, back into the outbox, whether they were accepted or \
            given up; a running worker posts them within a second. Notices are kept for seven days after they were \
            accepted or given up.
            """,
        options: [
            OptionSpecification(
                "within",
                .seconds(1...604_800),
                "the age of the oldest notice to post again. Default: 86400 (a day)",
                standard: "86400"
            ),
            OptionSpecification("user", .user, "only the notices of this user"),
            .json,
        ],
        settings: [.config, .database, .logLevel],
        examples: [
            (
                "refresh-worker notices replay --within 7200",
                "after the backend has lost the notices of the last two hours"
            )
        ],
        exitCodes: .ofDatabase()
    ) { arguments, context in
        let start = context.time.now - arguments.seconds("within")
        let count = try await context.withExistingStore(for: .changing) { store in
            try await store.replayNotices(since: start, ofUser: arguments["user"], at: context.time.now)
        }
        let queued = "\(count) \(count == 1 ? "notice is" : "notices are") queued to be posted again"
        context.answer(count == 0 ? "no notice matches" : queued) { $0.field("queued", count) }
        return .success
    }
}
