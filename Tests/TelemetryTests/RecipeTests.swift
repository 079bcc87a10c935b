import Base
import Foundation
import TestSupport
import Testing

@testable import RefreshWorker
@testable import Scheduler
@testable import Storage
@testable import Telemetry

@Suite(
    "The recipes in the document",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/jq"), "jq is not installed"),
    .timeLimit(.minutes(10))
)
struct RecipeTests {
    private let folder: TemporaryFolder
    private let start: Timestamp

    init() throws {
        folder = try TemporaryFolder()
        // Whole minutes a quarter of an hour ago, because one recipe looks back an hour from the real clock.
        let now = SystemTime().now
        start = Timestamp(milliseconds: now.milliseconds / 60_000 * 60_000 - 900_000)
    }

    @Test("give the documented results")
    func recipes() async throws {
        try folder.write(sampleLog(), to: "metrics.jsonl")
        let minute = String(start.iso8601.prefix(16))
        let nextMinute = String((start + .seconds(60)).iso8601.prefix(16))
        func stamp(_ seconds: Int) -> String { (start + .seconds(seconds)).iso8601 }
        let expected: [String: [String]] = [
            "Failures by verdict in the last hour": [
                #"["retrying server_error",2]"#, #"["disconnected invalid_grant",1]"#,
            ],
            "95th percentile of the latency, minute by minute": ["\(minute)\t97", "\(nextMinute)\t80"],
            "Grants that were disconnected": ["\(stamp(70))\t00000000000000ab\tinvalid_grant"],
            "Follow one grant": [
                "\(stamp(65))\trefresh\tretrying\tserver_error", "\(stamp(66))\trefresh\tretrying\tserver_error",
                "\(stamp(67))\trefresh\tdisconnected\tinvalid_grant",
                "\(stamp(70))\tstate\tactive > disconnected\tinvalid_grant",
            ],
            "Read a log that has half a line in it": [
                #"{"time":"\#(stamp(0))","event":"started","worker":"w","version":"\#(Version.current)","mode":"daemon"}"#
            ],
        ]
        let recipes = try MetricsDocument().recipes
        #expect(Set(recipes.map(\.title)) == Set(expected.keys))
        for recipe in recipes {
            // `tail -F` never ends.
            let command = recipe.command.replacing("tail -F", with: "cat")
            #expect(try output(of: command) == expected[recipe.title], "\(recipe.title)")
        }
        try folder.write(try folder.text("metrics.jsonl") + "{\"time\":\"20\n", to: "metrics.jsonl")
        let tolerant = try #require(recipes.last)
        #expect(try output(of: tolerant.command) == expected[tolerant.title])
    }

    @Test("The runbook's selection of grants that a long wave has ended takes grants without a reason too")
    func runbook() throws {
        let document = URL(filePath: #filePath).appending(path: "../../../docs/runbook.md").standardized
        let text = try String(contentsOf: document, encoding: .utf8)
        let selection = try #require(
            text.firstMatch(of: /refresh-worker grants export --plaintext \|\s+(jq -c '[^']+')/)
        )
        let grants = [
            ("a", "null", "2026-11-24T09:00:00Z"), ("b", #""invalid_grant""#, "2026-11-24T09:00:00Z"),
            ("c", #""invalid_grant""#, "2026-11-20T09:00:00Z"), ("d", #""user_request""#, "2026-11-24T09:00:00Z"),
        ]
        let lines = grants.map { user, reason, since in
            #"{"user_id":"\#(user)","state":"x","reason":\#(reason),"since":"\#(since)"}"#
        }
        try folder.write(lines.joined(separator: "\n"), to: "grants.jsonl")
        #expect(try output(of: "\(selection.1) <grants.jsonl") == [#"{"user_id":"b"}"#])
    }

    private func sampleLog() -> String {
        let sink = MemorySink()
        func record(_ seconds: Int, _ event: MetricsEvent) {
            sink.write(event.line(at: start + .seconds(seconds), worker: "w"))
        }
        var good = MetricsSamples.full
        (good.grant, good.counted.outcome, good.reason, good.answer) = (GrantID(rawValue: 0xcd), .refreshed, "", nil)
        record(0, .started(mode: "daemon"))
        var old = MetricsSamples.full
        (old.grant, old.reason, old.counted.latency) = (GrantID(rawValue: 0xef), "long_ago", nil)
        record(-7_200, old.event)
        for number in 1...100 {
            good.counted.latency = .milliseconds(number)
            good.standsFor = number > 50 ? 3 : nil
            record(number / 2, good.event)
        }
        record(65, MetricsSamples.full.event)
        record(66, MetricsSamples.full.event)
        var dead = MetricsSamples.full
        (dead.counted.outcome, dead.verdict, dead.reason) = (.disconnected, "invalid_grant", "invalid_grant")
        record(67, dead.event)
        record(70, MetricsSamples.disconnected(generation: 2))
        record(80, MetricsSamples.summary(MetricsSamples.counts, overdue: 0))
        record(81, MetricsSamples.summary(MetricsSamples.noCounts, overdue: 4))
        record(90, .breaker(client: "an-id", "opened", reason: "invalid_client"))
        record(91, .pacer(client: "an-id", ceiling: 12.5, paused: .zero, reason: "throttled"))
        record(95, MetricsSamples.alarm(.storeFailing, "Nothing can be stored."))
        return sink.lines.map { $0.text + "\n" }.joined()
    }

    /// Runs a command as a user would, and returns its output lines.
    private func output(of command: String) throws -> [String] {
        let shell = try ChildProcess("/bin/sh", ["-euc", "cd \"$0\"; \(command)", folder.url.path])
        let text = try shell.waitForSuccess()
        return text.split(separator: "\n").map(String.init)
    }
}
