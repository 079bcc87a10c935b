package import Base

/// An event that the metrics log reports in one line.
///
/// Each is declared in the file that makes it, which names every field once, with its value and its meaning:
///
///     static func stopped(uptime: Duration) -> MetricsEvent {
///         MetricsEvent("stopped") { $0.milliseconds("uptime_ms", uptime, "since its start") }
///     }
///
/// The lines and the tables of docs/metrics-log.md, which `make pages` writes, follow from it.
package struct MetricsEvent: Sendable {
    /// The value of the line's `event` field.
    let name: String
    private let write: @Sendable (inout MetricsLine) -> Void

    package init(_ name: String, _ write: @escaping @Sendable (inout MetricsLine) -> Void) {
        self.name = name
        self.write = write
    }

    func line(at instant: Timestamp, worker: String) -> JSONLine {
        var line = MetricsLine(event: name, at: instant, worker: worker)
        write(&line)
        return line.json
    }

    /// Returns the line with its own fields first, as scripts expect the result of a pass on standard output.
    package func resultLine(at instant: Timestamp, worker: String) -> JSONLine {
        var line = MetricsLine()
        line.json.field("event", name)
        write(&line)
        line.json.field("time", instant.iso8601)
        line.text("worker", worker, "")
        return line.json
    }

    /// The fields after those of every line, as docs/metrics-log.md describes them.
    var fields: [MetricsField] {
        var line = MetricsLine()
        line.fields = []
        write(&line)
        return line.fields ?? []
    }
}
