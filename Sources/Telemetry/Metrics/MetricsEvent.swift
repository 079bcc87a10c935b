package import Base

/// An event that the metrics log reports in one line.
package protocol MetricsEvent: Sendable {
    /// The value of the line's `event` field.
    static var name: String { get }
    /// The fields after those that every line has. A test compares them with `write` and with docs/metrics-log.md.
    static var fields: [MetricsField] { get }

    func write(into line: inout JSONLine)

    func line(at instant: Timestamp, worker: String) -> JSONLine
}

extension MetricsEvent {
    package func line(at instant: Timestamp, worker: String) -> JSONLine {
        var line = Self.beginning(at: instant, worker: worker)
        write(into: &line)
        return line
    }

    /// Returns the fields that every line has.
    static func beginning(at instant: Timestamp, worker: String) -> JSONLine {
        var line = JSONLine()
        line.field("time", instant.iso8601)
        line.field("event", Self.name)
        line.text("worker", worker, limit: TextLimit.name)
        return line
    }
}
