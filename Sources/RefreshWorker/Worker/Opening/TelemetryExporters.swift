import OpenTelemetry

/// What sends the telemetry of a worker to a collector.
struct TelemetryExporters: Sendable {
    /// `nil` if no collector gets metrics.
    let metrics: MetricsExporter?
    /// `nil` if no collector gets spans.
    let traces: TracesExporter?
}
