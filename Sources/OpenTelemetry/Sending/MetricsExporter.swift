package import Base
package import Telemetry

/// Sends the metrics of the worker periodically.
package struct MetricsExporter: Sendable {
    private let sender: TelemetrySender
    private let interval: Duration
    private let resource: Resource
    private let version: String
    private let startedAt: Timestamp
    private let time: any TimeSource

    /// Makes an exporter for the program with this version, whose counters began at 0 at `startedAt`.
    package init(
        over sender: TelemetrySender,
        every interval: Duration,
        resource: Resource,
        version: String,
        startedAt: Timestamp,
        time: any TimeSource
    ) {
        self.sender = sender
        self.interval = interval
        self.resource = resource
        self.version = version
        self.startedAt = startedAt
        self.time = time
    }

    /// Sends until the task is cancelled. A request is tried until the next one is due, so there is never a second.
    package func run(collecting collect: () async -> [Metric]) async {
        var nextAt = time.sinceBoot + interval
        while !Task.isCancelled {
            do {
                try await time.sleep(for: max(.zero, nextAt - time.sinceBoot))
            } catch {
                return
            }
            nextAt = max(nextAt + interval, time.sinceBoot)
            await export(within: max(.zero, nextAt - time.sinceBoot), collecting: collect)
        }
    }

    /// Sends the metrics as they are now, again if necessary, for as long as this span.
    package func export(within span: Duration, collecting collect: () async -> [Metric]) async {
        let metrics = await collect()
        let request = MetricsRequest(resource: resource, scopeVersion: version, startedAt: startedAt, at: time.now)
        await sender.send(request.encode(metrics), within: span)
    }
}
