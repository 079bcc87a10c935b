import Base
import HTTPClient
import Scheduler
import Storage

extension Command {
    /// `notices test`: posts a notice that is about nobody.
    static let testNotice = Command(
        words: ["notices", "test"],
        summary: "post a signed test notice to the backend, and print what it answers",
        discussion: """
            Posts one notice of the type test, about no user, to --notice-url. It is not stored and not repeated. The \
            worker need not run.
            """,
        options: [.jsonObject],
        settings: [.config, .noticeURL, .noticeSecretFile, .caFile, .logLevel],
        examples: ["refresh-worker notices test": "does the backend accept the signature?"],
        exitCodes: [.success, .usage, .peerUnreachable, .internalFailure, .inputOutput, .configuration]
    ) { _, context, output in
        guard let endpoint = context.configuration.noticeURL else {
            throw CommandError(.configuration, "--notice-url is needed: it names the receiver")
        }
        let keys = try context.openNoticeKeys()
        let http = try context.openHTTP()
        defer { http.shutDown() }
        let id = "ntc_test_\(String(context.random.nextBits(), radix: 16))"
        let start = context.time.sinceBoot
        var status: Int?
        var problem: String?
        do throws(HTTPError) {
            status = try await http.postTestNotice(id, to: endpoint, keys: keys, at: context.time.now)
        } catch {
            problem = error.description
        }
        let milliseconds = (context.time.sinceBoot - start).wholeMilliseconds
        var isAccepted = false
        var result = "no answer: \(problem ?? "")"
        if let status {
            isAccepted = (200...299).contains(status)
            result = "\(isAccepted ? "accepted" : "refused"): status \(status)"
        }
        output.answer("\(result) after \(milliseconds) ms, for the notice \(id)") { line in
            line.field("notice", id)
            line.field("accepted", isAccepted)
            line.fieldOrNull("status", status)
            line.fieldOrNull("problem", problem)
            line.field("milliseconds", milliseconds)
        }
        return isAccepted ? .success : .peerUnreachable
    }

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
            "refresh-worker notices replay --within 7200":
                "after the backend has lost the notices of the last two hours"
        ],
        exitCodes: .ofDatabase()
    ) { arguments, context, output in
        let start = context.time.now - arguments.seconds("within")
        let count = try await context.withExistingStore(for: .changing) { store in
            try await store.replayNotices(since: start, ofUser: arguments["user"], at: context.time.now)
        }
        let queued = "\(count) \(count == 1 ? "notice is" : "notices are") queued to be posted again"
        output.answer(count == 0 ? "no notice matches" : queued) { $0.field("queued", count) }
        return .success
    }
}
