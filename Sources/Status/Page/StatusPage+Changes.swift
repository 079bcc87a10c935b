import Telemetry

/// The last changes of grants' states.
extension StatusPage {
    var changesSection: HTML {
        section("State changes", id: "changes") {
            if contents.changes.isEmpty {
                element("p") { "This worker has not changed the state of a grant since it started." }
            } else {
                PageTable(
                    "The last \(RecentChanges.limit) that this worker made since it started.",
                    columns: ["Time", "Grant", "Change", "Reason"],
                    rows: contents.changes.prefix(RecentChanges.limit).map { change in
                        [
                            time(change.at), code(change.grant), self.change(from: change.from, to: change.to),
                            change.reason.isEmpty ? HTML("none") : code(change.reason),
                        ]
                    }
                ).html
            }
        }
    }

    func change(from: String?, to: String) -> HTML {
        let states = [from == to ? nil : from, to].compactMap(\.self)
        return element("code") {
            states.map { Self.shortened($0, limit: Self.nameLimit) }.joined(separator: " → ")
        }
    }
}
