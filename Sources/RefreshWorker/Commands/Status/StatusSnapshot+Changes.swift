import Base
import Scheduler
import Status
import Storage

/// What differs between two snapshots, for `status --watch`.
extension StatusSnapshot {
    /// Returns a line for each fact that differs from a former snapshot, or for all of them if there is none.
    ///
    /// The facts are those that do not change by the passing of time alone.
    func changes(since former: StatusSnapshot?) -> [String] {
        let (facts, old) = (facts, former?.facts ?? [])
        let changed = facts.filter { fact in !old.contains { $0 == fact } }
        let gone = old.filter { fact in !facts.contains { $0.name == fact.name } }.map { (name: $0.name, text: "gone") }
        return (changed + gone).map { "\(at.iso8601Seconds)  \($0.name): \($0.text)" }
    }

    /// Returns a line for each change, or in JSON the whole snapshot if there is a change.
    func lines(of changes: [String], asJSON isJSON: Bool) -> [String] {
        isJSON && !changes.isEmpty ? [json.text] : changes
    }

    private var facts: [(name: String, text: String)] {
        let states = statesInUse.isEmpty ? "none" : statesInUse.joined(separator: ", ")
        var facts = [(name: "grants", text: areGrantsCounted ? states : "not counted in time")]
        for client in clients {
            let reason = client.breakerReason.map { " (\($0))" } ?? ""
            let wave = client.isWave ? ", in a wave of refusals" : ""
            facts.append(("client \(DisplayedText(client.id))", "breaker \(client.breaker.name)\(reason)\(wave)"))
        }
        let workers = (workers ?? []).map(\.id).sorted().joined(separator: ", ")
        facts.append(("workers", workers.isEmpty ? "none running" : workers))
        let findings = findings
        let kinds = findings.map(\.kind).joined(separator: ", ")
        facts.append(("verdict", findings.verdict + (kinds.isEmpty ? "" : ": \(kinds)")))
        return facts
    }
}
