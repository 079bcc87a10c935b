import Base
import Crypto
import Status
import Storage
import Telemetry
import Worker

/// The report for people.
extension StatusReport {
    /// The column at which the facts begin.
    private static let column = 11

    var text: String {
        var lines = grantLines + clientLines + workerLines + keyLines
        let schema = database.schema.map { ", schema \($0)" } ?? ""
        lines.append(Self.line("database", "\(database.path), \(ByteCount.text(database.bytes))\(schema)"))
        lines += spillLines
        let judgement = judgement
        lines.append(Self.line("verdict", judgement.isWell ? "all is well" : "needs attention:"))
        for concern in judgement.concerns where !concern.isAdvisory { lines += Self.lines(concern) }
        for concern in judgement.concerns where concern.isAdvisory { lines += Self.lines(concern) }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func lines(_ concern: Concern) -> [String] {
        [
            "  - \(concern.isAdvisory ? "note: " : "")\(concern.text)",
            "    more: \(concern.command); \(concern.runbook)",
        ]
    }

    private static func line(_ title: String, _ facts: String) -> String { title.padding(to: column) + facts }

    /// Returns facts under one title, which precedes the first of them.
    private static func lines(_ title: String, _ facts: [String], otherwise none: String) -> [String] {
        guard let first = facts.first else { return [line(title, none)] }
        return [line(title, first)] + facts.dropFirst().map { line("", $0) }
    }

    private var grantLines: [String] {
        let states = statistics.statesInUse
        let detail = states.isEmpty ? "" : ": " + states.joined(separator: ", ")
        let waited = lateness.map { ", the oldest for \($0.inTwoUnits)" } ?? ""
        return [
            Self.line("at", at.iso8601Seconds),
            Self.line("grants", "\(statistics.grants)\(detail)"),
            Self.line(
                "expired",
                "\(statistics.expired.count) connected grants without a valid access token\(expiredFor)"
            ),
            Self.line("due", "\(statistics.due)\(waited)"),
            Self.line("ending", "\(statistics.refreshTokensEnding) refresh tokens within three days"),
            Self.line("idle", "\(statistics.idle) connected grants without a refresh for five months"),
        ]
    }

    private var expiredFor: String {
        statistics.expired.oldest.map { ", the oldest for \((at - $0).inTwoUnits)" } ?? ""
    }

    private var clientLines: [String] {
        Self.lines("clients", clients.map(\.sentence), otherwise: "none configured and none known yet")
    }

    private var workerLines: [String] {
        let facts = workers.map { worker in
            let keys = worker.keyIDs.map(\.description).joined(separator: " ")
            return "\(worker.id) holds keys \(keys), seals with \(worker.sealingKeyID)"
        }
        return Self.lines("workers", facts, otherwise: "none running")
    }

    private var keyLines: [String] {
        let facts = keyCounts.map { key in
            "\(key.id) \(key.isInRing == false ? "IS NOT IN THE RING, " : "")seals \(KeyListing.tokens(key.tokens))"
        }
        return Self.lines("keys", facts, otherwise: "nothing is sealed yet")
    }
}

extension StatusReport {
    private var spillLines: [String] {
        guard let spilledFiles else { return [Self.line("spilled", "cannot be listed")] }
        let facts = spilledFiles.map { file in
            let count = file.results.map { "\($0)" } ?? "unknown"
            return "\(file.path)\(file.isSetAside ? ", SET ASIDE" : ""), results: \(count)"
        }
        return Self.lines("spilled", facts, otherwise: "no results wait in files")
    }
}

extension StatusReport.Client {
    fileprivate var sentence: String {
        let reason = breakerReason.map { " (\($0))" } ?? ""
        let probe = nextProbe.map { ", next probe in \($0.inTwoUnits)" } ?? ""
        let rate = (ceiling * 10).rounded() / 10
        let pace = pause.map { "paused for \($0.inTwoUnits)" } ?? "at most \(rate) requests a second"
        let wave = isWave ? ", in a wave of invalid_grant" : ""
        let slowed = isSlowed ? ", slowed" : ""
        return "\(DisplayedText(id)): breaker \(breaker.rawValue)\(reason)\(probe), \(pace)\(slowed)\(wave)"
    }
}

extension GrantStatistics {
    /// The states that any grant is in, each with its number.
    var statesInUse: [String] {
        GrantState.allCases.compactMap { state in
            byState[state].flatMap { $0 > 0 ? "\($0) \(state.rawValue)" : nil }
        }
    }
}
