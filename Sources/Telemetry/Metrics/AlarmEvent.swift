package import Base

/// A condition that a person should look at, reported once and not for each grant.
package struct AlarmEvent: MetricsEvent {
    package static let name = "alarm"

    package static let fields: [MetricsField] = [
        .always("kind", .string, "the code of the alarm"),
        .always("text", .string, "a sentence for a person, at most 512 bytes"),
        .always("count", .integer, "the number of grants or answers that caused it"),
        .sometimes("client", .string, "the client id; only if the alarm is about one"),
    ]

    /// The code of the alarm.
    package var kind: String
    /// A sentence for a person.
    package var text: String
    /// The number of grants or answers that caused it.
    package var count: Int
    /// The client id, if the alarm is about one.
    package var client: String?

    package init(kind: String, text: String, count: Int, client: String? = nil) {
        self.kind = kind
        self.text = text
        self.count = count
        self.client = client
    }

    package func write(into line: inout JSONLine) {
        line.text("kind", kind, limit: TextLimit.name)
        line.text("text", text, limit: TextLimit.sentence)
        line.field("count", count)
        if let client { line.text("client", client, limit: TextLimit.name) }
    }
}
