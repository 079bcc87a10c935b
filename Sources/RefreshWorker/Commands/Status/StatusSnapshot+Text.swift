import Base
import Crypto
import Scheduler
import Status
import Storage

/// The snapshot for people.
extension StatusSnapshot {
    /// The report as a pipe or a file gets it.
    var text: String { text(for: TextForm()) }

    func text(for form: TextForm) -> String {
        var text = ""
        /// Writes facts under one title, which precedes the first of them.
        func write(_ title: String, _ facts: [String], otherwise none: String = "") {
            for (index, fact) in (facts.isEmpty ? [none] : facts).enumerated() {
                let start = (index == 0 ? title : "").padding(to: Self.titleWidth)
                text += form.folded(fact, after: start) + "\n"
            }
        }
        func oldest(for span: Duration?) -> String { span.map { ", the oldest for \($0.inTwoUnits)" } ?? "" }
        let states = statesInUse.isEmpty ? "" : ": " + statesInUse.joined(separator: ", ")
        write("at", [at.iso8601Seconds])
        func counted(_ text: String) -> String { areGrantsCounted ? text : "not counted in time" }
        write("grants", [counted("\(grants.grants)\(states)")])
        let reasons = grants.retryingByReason.map { "\($0.count) \($0.reason)" }
        if !reasons.isEmpty { write("retrying", [reasons.joined(separator: ", ")]) }
        let expired = "\(grants.expired.count.counted("connected grant")) without a valid access token"
        write("expired", [counted(expired + oldest(for: grants.expired.oldest.map { at - $0 }))])
        write("due", [counted("\(grants.due)\(oldest(for: grants.lateness(at: at)))")])
        write("ending", [counted(grants.refreshTokensEnding.counted("refresh token") + " within three days")])
        write("idle", [counted(grants.idle.counted("connected grant") + " without a refresh for five months")])
        write(
            "clients",
            clients.flatMap { [$0.sentence] + $0.failureSentences(at: at) },
            otherwise: "none configured and none known yet"
        )
        let workers = (workers ?? []).map { worker in
            let keys = worker.keyIDs.map(\.description).joined(separator: " ")
            return "\(worker.id) holds keys \(keys), seals with \(worker.sealingKeyID)"
        }
        write("workers", workers, otherwise: "none running")
        let keys = keyCounts.map { key in
            let tokens = key.tokens?.counted("token") ?? "tokens that were not counted in time"
            return "\(key.id) \(key.isInRing == false ? "IS NOT IN THE RING, " : "")needed by \(tokens)"
        }
        write("keys", keys, otherwise: "nothing is sealed yet")
        let schema = schema.map { ", schema \($0)" } ?? ""
        write("database", ["\(database), \(databaseBytes.inBytes)\(schema)"])
        let files = spilledFiles?.map { file in
            let count = file.results.map { "\($0)" } ?? "unknown"
            return "\(file.path)\(file.isSetAside ? ", SET ASIDE" : ""), results: \(count)"
        }
        write("spilled", files ?? ["cannot be listed"], otherwise: "no results wait in files")
        let findings = findings
        let verdict = form.coloured(findings.verdict, by: findings.severity)
        text += "verdict".padding(to: Self.titleWidth) + verdict + (findings.isEmpty ? "\n" : ":\n")
        for finding in findings { text += Self.lines(of: finding, for: form) }
        return text
    }

    private static let titleWidth = 11

    /// Returns the lines of a finding. An effect is below its cause.
    private static func lines(of finding: Finding, for form: TextForm) -> String {
        let indent = finding.cause == nil ? "" : "    "
        let urgency = finding.severity.urgency
        // Folded without the colour, which has no width.
        let start = "\(indent)  - "
        let sentence = form.folded("\(urgency): \(finding.text)", after: start).dropFirst(start.count + urgency.count)
        let coloured = start + form.coloured(urgency, by: finding.severity) + sentence
        // A command that people copy stays on one line.
        let separator = form.width == nil ? "; " : "\n\(indent)    "
        return "\(coloured)\n\(indent)    more: \(finding.command)\(separator)\(finding.runbook)\n"
    }

    /// The states that any grant is in, each with its number.
    var statesInUse: [String] {
        GrantState.allCases.compactMap { state in
            grants.byState[state].flatMap { $0 > 0 ? "\($0) \(state.rawValue)" : nil }
        }
    }
}
