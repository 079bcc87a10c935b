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
                let recent = changes.prefix(EngineLog.maximumRecentChanges)
                let rest = recent.dropFirst(Self.newestChanges)
                table(
                    of: recent.prefix(Self.newestChanges),
                    caption: "The last \(EngineLog.maximumRecentChanges) that this worker made since it started."
                )
                if !rest.isEmpty {
                    element("details", ["id": "older-changes"]) {
                        element("summary", ["id": "older-changes-summary"]) { "\(rest.count) older" }
                        table(of: rest, caption: "The changes before those.")
                    }
                }
            }
        }
    }

    /// The changes that are shown first: as many as one looks at, and a phone has room for what follows.
    private static let newestChanges = 5

    private func table(of changes: ArraySlice<GrantEvent>, caption: String) -> HTML {
        table(
            caption,
            className: "changes",
            columns: ["Time", "Grant", "Change", "Reason"],
            rows: changes.map { change in
                [
                    time(change.at), link(to: change.grant, showing: HTML(change.grant.description)),
                    self.change(from: change.from?.rawValue, to: change.to.rawValue),
                    change.reason == .none ? HTML("none") : link(reason: change.reason),
                ]
            }
        )
    }

    func change(from: String?, to: String) -> HTML {
        let states = [from == to ? nil : from, to].compactMap(\.self)
        return element("code") {
            states.map { $0.shortened(to: Self.nameLimit) }.joined(separator: " → ")
        }
    }
}
