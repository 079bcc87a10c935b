import Base
import OpenTelemetry
import Status
import Telemetry

/// The telemetry for a collector.
extension Worker {
    /// How long the last request is tried, of a daemon that stops and of a pass.
    static let timeForLastTelemetry: Duration = .seconds(2)

    /// The loops of a daemon.
    var telemetryLoops: [BackgroundLoop] {
        var loops: [BackgroundLoop] = []
        if let metrics = exporters.metrics { loops.append { await metrics.run(collecting: collectMetrics) } }
        if let traces = exporters.traces { loops.append(traces.run) }
        return loops
    }

    /// Sends what has happened since the last requests, within a time that a collector cannot extend.
    func sendLastTelemetry() async {
        guard exporters.metrics != nil || exporters.traces != nil else { return }
        await context.time.wait(atMost: Self.timeForLastTelemetry) {
            await exporters.traces?.export(within: Self.timeForLastTelemetry)
            guard let metrics = exporters.metrics else { return }
            // A pass has not looked at the database as a daemon does.
            await status.database.check()
            await metrics.export(within: Self.timeForLastTelemetry, collecting: collectMetrics)
        }
    }

    private func collectMetrics() async -> [Metric] {
        await metricsSource.metrics(certificateExpiresAt: listeners?.internalListener?.certificate?.expiresAt)
    }
}
