import Base
import Scheduler
import Storage

/// The last changes of grants' states.
extension StatusPage {
    var changesSection: HTML {
        section("State changes", id: "changes") {
            if changes.isEmpty {
                element("p") { "This worker has not changed the state of a grant since it started." }
            } else {
                table(
                    "The last \(EngineLog.maximumRecentChanges) that this worker made since it started.",
                    columns: ["Time", "Grant", "Change", "Reason"],
                    rows: changes.prefix(EngineLog.maximumRecentChanges).map { change in
                        [
                            time(change.at), link(to: change.grant, showing: HTML(change.grant.description)),
                            self.change(from: change.from?.rawValue, to: change.to.rawValue),
                            change.reason == .none ? HTML("none") : link(reason: change.reason),
                        ]
                    }
                )
            }
        }
    }

    func change(from: String?, to: String) -> HTML {
        let states = [from == to ? nil : from, to].compactMap(\.self)
        return element("code") {
            states.map { $0.shortened(to: Self.nameLimit) }.joined(separator: " → ")
        }
    }
}
