package import Base
import Telemetry

/// A condition that a person should look at.
package struct Concern: Hashable, Sendable {
    /// The code of the kind: a ``Condition`` or an `AlarmKind`.
    ///
    /// It is also the section of docs/runbook.md.
    package var kind: String
    /// One sentence; its wording may change.
    package var text: String
    /// The time since which it holds, if that is known.
    package var since: Timestamp?
    /// The number of grants, keys, notices, files or answers that it is about.
    package var count: Int
    /// The client id that it is about.
    package var client: String?
    /// A command that shows more.
    package var command: String
    /// `true` if it does not change the verdict.
    package var isAdvisory: Bool

    package init(
        _ condition: Condition,
        _ text: String,
        since: Timestamp? = nil,
        count: Int = 1,
        client: String? = nil
    ) {
        kind = condition.rawValue
        self.text = text
        self.since = since
        self.count = count
        self.client = client
        command = condition.command
        isAdvisory = condition.isAdvisory
    }

    init(_ alarm: CurrentAlarm) {
        kind = alarm.kind.rawValue
        text = alarm.text
        since = alarm.since
        count = alarm.count
        client = alarm.client.isEmpty ? nil : alarm.client
        command = "refresh-worker doctor"
        isAdvisory = false
    }

    /// The section of the runbook.
    package var runbook: String { "docs/runbook.md#\(kind)" }

    package func write(into line: inout JSONLine) {
        line.field("kind", kind)
        line.field("text", text)
        line.field("advisory", isAdvisory)
        line.fieldOrNull("since", since?.iso8601)
        line.field("count", count)
        line.fieldOrNull("client_id", client)
        line.field("command", command)
        line.field("runbook", runbook)
    }
}
