import Base
import Telemetry

/// Something about an installation that a person should look at.
///
///     Finding(.grantsOverdue, "the oldest due grant has waited 20 min", count: 12)
///
/// It is printed by `status` and `doctor`, shown by the status page, and counted in the metrics.
package struct Finding: Hashable, Sendable {
    /// The code of the kind: a ``Kind`` or an `AlarmKind`. It is also the section of docs/runbook.md.
    package var kind: String
    /// One sentence, whose wording can change.
    package var text: String
    /// The time since which it holds, if that is known.
    var since: Timestamp?
    /// The number of grants, keys, notices, files or answers that it is about.
    var count: Int
    /// The client id that it is about.
    var client: String?
    /// The command that has Google send a security event now.
    package static let requestSecurityEvent = "refresh-worker google-events verify --service-account-file FILE"

    /// A command that shows more.
    package var command: String
    package var severity: Severity
    /// The kind of the finding that this one follows from, and that comes before it.
    package internal(set) var cause: String?
    /// `true` if `doctor` leaves it to its own checks.
    package var isCheckedByDoctor = false

    init(
        _ kind: Kind,
        _ text: String,
        since: Timestamp? = nil,
        count: Int = 1,
        client: String? = nil,
        severity: Severity? = nil
    ) {
        self.kind = kind.rawValue
        self.text = text
        self.since = since
        self.count = count
        self.client = client
        command = kind.command
        self.severity = severity ?? kind.severity
        isCheckedByDoctor = kind.isCheckedByDoctor
    }

    init(_ alarm: CurrentAlarm) {
        kind = alarm.kind.rawValue
        text = alarm.text
        since = alarm.since
        count = alarm.count
        client = alarm.client.isEmpty ? nil : alarm.client
        command = "refresh-worker doctor"
        severity = alarm.kind.severity
        isCheckedByDoctor = [.projectInTesting, .storeMoved].contains(alarm.kind)
    }

    package var runbook: String { "docs/runbook.md#\(kind)" }

    /// Writes the finding for programs, with the paths of documents where they really are.
    func write(into line: inout JSONLine, documents: DocumentFolder = .current) {
        line.field("kind", kind)
        line.field("text", documents.located(text))
        line.field("severity", severity.rawValue)
        line.fieldOrNull("since", since?.iso8601)
        line.field("count", count)
        line.fieldOrNull("client_id", client)
        line.fieldOrNull("cause", cause)
        line.field("command", command)
        line.field("runbook", documents.located(runbook))
    }
}
