package import Base

/// The log of the worker's actions for programs: one JSON object per line.
package struct MetricsLog: Sendable {
    private let sink: (any LineSink)?
    private let worker: String
    private let time: any TimeSource

    /// Makes a log, whose lines are lost without a sink.
    ///
    /// `worker` is the worker's name in its lines and leases.
    package init(sink: (any LineSink)?, worker: String, time: any TimeSource) {
        self.sink = sink
        self.worker = worker
        self.time = time
    }

    /// Writes an event's line without making the caller wait.
    ///
    /// Returns `false` if the line might be lost, for actions that must not happen without a record.
    @discardableResult
    package func record(_ event: MetricsEvent) -> Bool {
        sink?.write(event.line(at: time.now, worker: worker)) ?? false
    }

    /// Writes the lines of `count` events of one name that happened together, which begin with the same fields.
    ///
    /// `write` gets the index of an event, because an event with its texts is costly to copy.
    package func record(_ name: String, count: Int, _ write: (Int, inout MetricsLine) -> Void) {
        let beginning = MetricsLine(event: name, at: time.now, worker: worker)
        for index in 0..<count {
            var line = MetricsLine(json: JSONLine(continuing: beginning.json))
            write(index, &line)
            sink?.write(line.json)
        }
    }

    /// The number of lines lost since the start, for the next summary.
    package var droppedLines: Int { sink?.droppedLines ?? 0 }
    /// `true` while lines cannot be written.
    package var isFailing: Bool { sink?.isFailing ?? false }
}

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

    /// Returns the complete line.
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

/// A field of an event in the metrics log, as docs/metrics-log.md describes it.
struct MetricsField: Hashable, Sendable {
    let name: String
    /// Its type in JSON, where `integer` is a whole `number`, followed by a `?` if the field is left out without a
    /// value.
    let type: String
    let meaning: String
}

/// A line of the metrics log while its fields are written.
package struct MetricsLine {
    /// The maximum length of a code, an id or a name, in bytes.
    package static let maximumName = 128
    /// The maximum length of a list of scopes, in bytes.
    ///
    /// Requests with longer lists are refused.
    package static let maximumScopes = 1024

    var json = JSONLine()
    /// The fields so far, if they and not the line are wanted.
    var fields: [MetricsField]?

    package mutating func text(
        _ name: String,
        _ value: String,
        maximum: Int = maximumName,
        _ meaning: @autoclosure () -> String
    ) {
        note(name, "string", meaning)
        json.text(name, value, limit: maximum)
    }

    package mutating func text(
        _ name: String,
        ifAny value: String?,
        maximum: Int = maximumName,
        _ meaning: @autoclosure () -> String
    ) {
        note(name, "string?", meaning)
        if let value { json.text(name, value, limit: maximum) }
    }

    package mutating func number(_ name: String, _ value: Int, _ meaning: @autoclosure () -> String) {
        note(name, "integer", meaning)
        json.field(name, value)
    }

    package mutating func number(_ name: String, ifAny value: Int?, _ meaning: @autoclosure () -> String) {
        note(name, "integer?", meaning)
        if let value { json.field(name, value) }
    }

    package mutating func fraction(_ name: String, _ value: Double, _ meaning: @autoclosure () -> String) {
        note(name, "number", meaning)
        json.field(name, value)
    }

    package mutating func flag(_ name: String, _ value: Bool, _ meaning: @autoclosure () -> String) {
        note(name, "boolean", meaning)
        json.field(name, value)
    }

    package mutating func milliseconds(_ name: String, _ value: Duration, _ meaning: @autoclosure () -> String) {
        note(name, "integer", meaning)
        json.milliseconds(name, value)
    }

    package mutating func milliseconds(
        _ name: String,
        ifAny value: Duration?,
        _ meaning: @autoclosure () -> String
    ) {
        note(name, "integer?", meaning)
        if let value { json.milliseconds(name, value) }
    }

    /// Writes the percentiles of a quantity in milliseconds, such as `latency_p95_ms`, if it has values.
    package mutating func percentiles(_ quantity: String, _ values: Histogram, _ meaning: @autoclosure () -> String) {
        for percent in [50, 95, 99] {
            let value = values.percentile(Double(percent) / 100).map { Int($0) }
            number("\(quantity)_p\(percent)_ms", ifAny: value, meaning())
        }
    }

    private mutating func note(_ name: String, _ type: String, _ meaning: () -> String) {
        guard fields != nil else { return }
        fields?.append(MetricsField(name: name, type: type, meaning: meaning()))
    }
}

extension MetricsLine {
    init(event: String, at instant: Timestamp, worker: String) {
        begin(event: event, at: instant, worker: worker)
    }

    /// Writes the fields of every line.
    mutating func begin(event: String, at instant: Timestamp, worker: String) {
        text("time", instant.iso8601, "UTC with milliseconds, as in `2026-11-21T03:17:39.123Z`")
        text("event", event, "one of the events below")
        text("worker", worker, "the worker that wrote the line")
    }
}
