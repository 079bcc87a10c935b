package import Base

/// An event that the metrics log reports in one line.
///
/// A function of this type makes each event, and names each of its fields once, with its meaning. Lines, the schema
/// and the tables of docs/metrics-log.md follow from it:
///
///     static func stopped(uptime: Duration) -> MetricsEvent {
///         MetricsEvent("stopped") { $0.milliseconds("uptime_ms", uptime, "milliseconds since it started") }
///     }
package struct MetricsEvent: Sendable {
    /// The value of the line's `event` field.
    let name: String
    private let write: @Sendable (inout MetricsLine) -> Void

    init(_ name: String, _ write: @escaping @Sendable (inout MetricsLine) -> Void) {
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
    enum Kind: String, Sendable {
        case string
        /// A whole number.
        case integer
        /// A number that may have a fraction.
        case number
        case boolean
    }

    let name: String
    let kind: Kind
    /// `false` if the field is omitted without a value.
    let isAlwaysGiven: Bool
    let meaning: String

    /// The fields that every line has.
    static let common: [MetricsField] = {
        var line = MetricsLine(json: JSONLine(), fields: [])
        line.begin(event: "", at: Timestamp(milliseconds: 0), worker: "")
        return line.fields ?? []
    }()
}

/// A line of the metrics log while its fields are written.
struct MetricsLine {
    /// The maximum length of a code, an id or a name, in bytes.
    static let maximumName = 128

    var json = JSONLine()
    /// The fields so far, if they and not the line are wanted.
    var fields: [MetricsField]?

    mutating func text(
        _ name: String,
        _ value: String,
        maximum: Int = maximumName,
        _ meaning: @autoclosure () -> String
    ) {
        note(name, .string, true, meaning)
        json.text(name, value, limit: maximum)
    }

    mutating func text(
        _ name: String,
        ifAny value: String?,
        maximum: Int = maximumName,
        _ meaning: @autoclosure () -> String
    ) {
        note(name, .string, false, meaning)
        if let value { json.text(name, value, limit: maximum) }
    }

    mutating func number(_ name: String, _ value: Int, _ meaning: @autoclosure () -> String) {
        note(name, .integer, true, meaning)
        json.field(name, value)
    }

    mutating func number(_ name: String, ifAny value: Int?, _ meaning: @autoclosure () -> String) {
        note(name, .integer, false, meaning)
        if let value { json.field(name, value) }
    }

    mutating func fraction(_ name: String, _ value: Double, _ meaning: @autoclosure () -> String) {
        note(name, .number, true, meaning)
        json.field(name, value)
    }

    mutating func flag(_ name: String, _ value: Bool, _ meaning: @autoclosure () -> String) {
        note(name, .boolean, true, meaning)
        json.field(name, value)
    }

    mutating func milliseconds(_ name: String, _ value: Duration, _ meaning: @autoclosure () -> String) {
        note(name, .integer, true, meaning)
        json.milliseconds(name, value)
    }

    mutating func milliseconds(_ name: String, ifAny value: Duration?, _ meaning: @autoclosure () -> String) {
        note(name, .integer, false, meaning)
        if let value { json.milliseconds(name, value) }
    }

    private mutating func note(
        _ name: String,
        _ kind: MetricsField.Kind,
        _ isAlwaysGiven: Bool,
        _ meaning: () -> String
    ) {
        guard fields != nil else { return }
        fields?.append(MetricsField(name: name, kind: kind, isAlwaysGiven: isAlwaysGiven, meaning: meaning()))
    }
}

extension MetricsLine {
    init(event: String, at instant: Timestamp, worker: String) {
        begin(event: event, at: instant, worker: worker)
    }

    /// Writes the fields of every line.
    mutating func begin(event: String, at instant: Timestamp, worker: String) {
        text("time", instant.iso8601, "the time of the line: UTC with milliseconds, as in `2026-11-21T03:17:39.123Z`")
        text("event", event, "the name of one of the events below")
        text("worker", worker, "the name of the worker that wrote the line")
    }
}
