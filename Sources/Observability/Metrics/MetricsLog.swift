package import Clocks

/// The worker's record of what it did, for programs to read: one JSON object a line.
package struct MetricsLog: Sendable {
    private let sink: any LineSink
    private let worker: String
    private let time: any TimeSource

    /// `worker` is the name that the worker signs its lines and its leases with.
    package init(sink: any LineSink, worker: String, time: any TimeSource) {
        self.sink = sink
        self.worker = worker
        self.time = time
    }

    /// Writes an event's line without making the caller wait.
    ///
    /// Answers whether the line can be counted on, for what must not happen without a record of it.
    @discardableResult
    package func record(_ event: some MetricsEvent) -> Bool {
        sink.write(event.line(at: time.now, worker: worker))
    }

    /// How many lines were lost since the start, for the next summary.
    package var droppedLines: Int { sink.droppedLines }
}
