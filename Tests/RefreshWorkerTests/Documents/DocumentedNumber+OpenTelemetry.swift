import TestSupport

@testable import Base
@testable import OpenTelemetry
@testable import RefreshWorker
@testable import Telemetry

/// What is sent to a collector.
extension DocumentedNumber {
    static var openTelemetry: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/opentelemetry.md",
            "with metrics, by default \(OpenTelemetrySettings.defaultMetricsInterval.wholeMilliseconds).",
            "for at most \(CollectorEndpoint.deadline.spelled)",
            "or \(TelemetrySender.firstWait.spelled), and then twice as long",
            "at most \(TelemetrySender.maximumWait.spelled)",
            "for more than \(MetricsRequest.maximumPoints.grouped) data points",
            "or \(SpanBuffer.maximumSpans.grouped) spans",
            "with spans is tried for \(TracesExporter.maximumTime.spelled)",
            "tries its last request for \(Worker.timeForLastTelemetry.spelled)",
            """
            sent every \(TracesExporter.interval.spelled), at most \(TracesExporter.batchSize) in one request. \
            \(SpanBuffer.maximumSpans.grouped) wait at most
            """
        )
        return numbers
    }
}
