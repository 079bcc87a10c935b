package import Base

/// The log of the worker's actions for programs: one JSON object per line.
package struct MetricsLog: Sendable {
    private let sink: any LineSink
    private let worker: String
    private let time: any TimeSource

    /// Makes a log.
    ///
    /// `worker` is the worker's name in its lines and leases.
    package init(sink: any LineSink, worker: String, time: any TimeSource) {
        self.sink = sink
        self.worker = worker
        self.time = time
    }

    /// Writes an event's line without making the caller wait.
    ///
    /// Returns `false` if the line may be lost, for actions that must not happen without a record.
    @discardableResult
    package func record(_ event: some MetricsEvent) -> Bool {
        sink.write(event.line(at: time.now, worker: worker))
    }

    /// Writes the lines of refreshes that ended together, which begin with the same fields.
    package func record(_ refreshes: [RefreshEvent]) {
        let beginning = RefreshEvent.beginning(at: time.now, worker: worker)
        // By index, here and in the counters: an event with its texts is costly to copy.
        for index in refreshes.indices {
            var line = JSONLine(continuing: beginning)
            refreshes[index].write(into: &line)
            sink.write(line)
        }
    }

    /// The number of lines lost since the start, for the next summary.
    package var droppedLines: Int { sink.droppedLines }
    /// `true` while lines cannot be written.
    package var isFailing: Bool { sink.isFailing }
}

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

/// A field of an event in the metrics log, as docs/metrics-log.md describes it.
package struct MetricsField: Hashable, Sendable {
    package enum Kind: String, Sendable {
        case string
        /// A whole number.
        case integer
        /// A number that may have a fraction.
        case number
        case boolean
    }

    package enum Presence: String, Sendable {
        case always
        /// The field is omitted if it has no value.
        case sometimes
    }

    package let name: String
    package let kind: Kind
    package let presence: Presence
    package let meaning: String

    static func always(_ name: String, _ kind: Kind, _ meaning: String) -> MetricsField {
        MetricsField(name: name, kind: kind, presence: .always, meaning: meaning)
    }

    static func sometimes(_ name: String, _ kind: Kind, _ meaning: String) -> MetricsField {
        MetricsField(name: name, kind: kind, presence: .sometimes, meaning: meaning)
    }
}

/// The schema of the metrics log: docs/metrics-log.md in code.
package enum MetricsSchema {
    /// The fields that every line has.
    package static let common: [MetricsField] = [
        .always("time", .string, "the time of the line: UTC with milliseconds, as in `2026-11-21T03:17:39.123Z`"),
        .always("event", .string, "the name of one of the events below"),
        .always("worker", .string, "the name of the worker that wrote the line"),
    ]

    /// The events, in the order of the document.
    package static let events: [any MetricsEvent.Type] = [
        RefreshEvent.self, VendEvent.self, LookupEvent.self, StateEvent.self, BreakerEvent.self, PacerEvent.self,
        AlarmEvent.self, SecurityEventEvent.self, SummaryEvent.self, PassEvent.self, StartedEvent.self,
        StoppingEvent.self,
        StoppedEvent.self, ClockStepEvent.self, NoticeEvent.self,
    ]
}

/// The maximum length in bytes of a text in the metrics log.
enum TextLimit {
    /// A code, an id or a name.
    static let name = 128
    /// A text from Google.
    static let answer = 256
    /// A sentence of the worker.
    static let sentence = 512
}
