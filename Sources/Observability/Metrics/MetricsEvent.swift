package import Clocks
package import JSON

/// Something that the metrics log tells in one line.
package protocol MetricsEvent: Sendable {
    /// The value of the line's `event` field.
    static var name: String { get }
    /// The fields after those that every line has; a test holds them to what `write` does and to docs/metrics-log.md.
    static var fields: [MetricsField] { get }

    func write(into line: inout JSONLine)

    func line(at instant: Timestamp, worker: String) -> JSONLine
}

extension MetricsEvent {
    package func line(at instant: Timestamp, worker: String) -> JSONLine {
        var line = JSONLine()
        line.field("time", instant.iso8601)
        line.field("event", Self.name)
        line.text("worker", worker, limit: TextLimit.name)
        write(into: &line)
        return line
    }
}

/// How many bytes of a text the metrics log shows.
enum TextLimit {
    /// A code, an id or a name.
    static let name = 128
    /// A text from Google.
    static let answer = 256
    /// A sentence of the worker's own.
    static let sentence = 512
}
