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
    package func record(_ event: MetricsEvent) -> Bool {
        sink.write(event.line(at: time.now, worker: worker))
    }

    /// Writes the lines of refreshes that ended together, which begin with the same fields.
    package func record(_ refreshes: [RefreshEvent]) {
        let beginning = MetricsLine(event: RefreshEvent.name, at: time.now, worker: worker)
        // By index, here and in the counters: an event with its texts is costly to copy.
        for index in refreshes.indices {
            var line = MetricsLine(json: JSONLine(continuing: beginning.json))
            refreshes[index].write(into: &line)
            sink.write(line.json)
        }
    }

    /// The number of lines lost since the start, for the next summary.
    package var droppedLines: Int { sink.droppedLines }
    /// `true` while lines cannot be written.
    package var isFailing: Bool { sink.isFailing }
}
