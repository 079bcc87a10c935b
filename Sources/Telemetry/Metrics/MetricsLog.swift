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
        guard let sink else { return }
        var line = MetricsLine(event: name, at: time.now, worker: worker)
        let commonLength = line.json.length
        for index in 0..<count {
            write(index, &line)
            sink.write(line.json)
            line.json.removeFields(after: commonLength)
        }
    }

    /// Lines lost since the start, for the next summary.
    package var droppedLines: Int { sink?.droppedLines ?? 0 }
    /// `true` while lines cannot be written.
    package var isFailing: Bool { sink?.isFailing ?? false }
}
