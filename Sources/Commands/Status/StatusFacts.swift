import Status
import Storage
import Telemetry
import Worker

/// The facts of a report that `status --watch` compares: those that do not change by the passing of time alone.
struct StatusFacts: Equatable {
    /// A fact and its name, such as `grants` and `3 active, 1 retrying`.
    struct Fact: Equatable {
        let name: String
        let text: String
    }

    let facts: [Fact]

    init(_ report: StatusReport) {
        let states = report.statistics.statesInUse
        let clients = report.clients.map { client in
            let reason = client.breakerReason.map { " (\($0))" } ?? ""
            let wave = client.isWave ? ", in a wave of invalid_grant" : ""
            return Fact(
                name: "client \(DisplayedText(client.id))",
                text: "breaker \(client.breaker.rawValue)\(reason)\(wave)"
            )
        }
        let workers = report.workers.map(\.id).sorted().joined(separator: ", ")
        let concerns = report.judgement.concerns.filter { !$0.isAdvisory }.map(\.kind)
        facts =
            [Fact(name: "grants", text: states.isEmpty ? "none" : states.joined(separator: ", "))]
            + clients
            + [
                Fact(name: "workers", text: workers.isEmpty ? "none running" : workers),
                Fact(
                    name: "verdict",
                    text: concerns.isEmpty ? "all is well" : "needs attention: \(concerns.joined(separator: ", "))"
                ),
            ]
    }

    /// Returns the facts that differ from the former ones; all of them if there are none.
    func changes(since former: StatusFacts?) -> [Fact] {
        guard let former else { return facts }
        let gone = former.facts.filter { old in !facts.contains { $0.name == old.name } }
        return facts.filter { !former.facts.contains($0) } + gone.map { Fact(name: $0.name, text: "gone") }
    }
}
