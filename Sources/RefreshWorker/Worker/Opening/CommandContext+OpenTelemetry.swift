import HTTPClient
import OpenTelemetry
import Telemetry

/// Opens what sends telemetry to a collector.
extension CommandContext {
    var openTelemetrySettings: OpenTelemetrySettings {
        OpenTelemetrySettings(endpoint: configuration.otlpEndpoint, environment: inputs.environment)
    }

    /// Returns what sends telemetry to the configured collector.
    ///
    /// It has an HTTP client of its own, with one request in flight. A collector can keep a client's thread busy, and
    /// that must not delay requests to Google.
    func openTelemetryExporters(counters: EventCounters) throws -> TelemetryExporters {
        let settings = openTelemetrySettings
        for problem in settings.problems {
            diagnostics.warning(
                "a setting of OpenTelemetry is not used",
                ["setting": problem.variable, "error": problem.message]
            )
        }
        guard settings.sendsAnything else { return TelemetryExporters(metrics: nil, traces: nil) }
        let http = try openHTTP(maximumInFlight: 1)
        let resource = Resource(
            serviceName: settings.serviceName,
            given: settings.resourceAttributes,
            version: Version.current,
            worker: workerName
        )
        func sender(of signal: TelemetrySignal, to endpoint: Endpoint) -> TelemetrySender {
            TelemetrySender(
                of: signal,
                to: CollectorEndpoint(endpoint, headers: settings.headers, over: http),
                counters: counters,
                diagnostics: diagnostics,
                time: time,
                random: random
            )
        }
        var metrics: MetricsExporter?
        if let endpoint = settings.metricsEndpoint {
            metrics = MetricsExporter(
                over: sender(of: .metrics, to: endpoint),
                every: settings.metricsInterval,
                resource: resource,
                version: Version.current,
                startedAt: counters.startedAt,
                time: time
            )
        }
        var traces: TracesExporter?
        if let endpoint = settings.tracesEndpoint {
            traces = TracesExporter(
                over: sender(of: .traces, to: endpoint),
                of: SpanBuffer(counters: counters, time: time, random: random),
                request: TracesRequest(resource: resource, scopeVersion: Version.current),
                time: time
            )
        }
        return TelemetryExporters(metrics: metrics, traces: traces)
    }
}
