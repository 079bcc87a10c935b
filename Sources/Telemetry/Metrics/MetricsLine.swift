internal import Base

/// A line of the metrics log while its fields are written.
package struct MetricsLine {
    /// The maximum length of a code, an id or a name, in bytes.
    package static let maximumName = 128
    /// The maximum length of a list of scopes, in bytes. Requests with longer lists are refused.
    package static let maximumScopes = 1024
    /// The maximum length of an alarm's sentence, in bytes.
    static let maximumSentence = 512

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

    /// Writes an id of 64 bits, as sixteen hexadecimal digits.
    package mutating func id(_ name: String, _ value: UInt64, _ meaning: @autoclosure () -> String) {
        note(name, "string", meaning)
        json.hexadecimal(name, value)
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
