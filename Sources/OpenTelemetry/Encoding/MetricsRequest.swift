package import Base
package import Telemetry

/// The metrics of one instant as the body of a request to `/v1/metrics`: an `ExportMetricsServiceRequest` in JSON
/// (https://opentelemetry.io/docs/specs/otlp/#otlphttp-request).
///
/// Counters and histograms are cumulative, from the start of the worker. That is OTLP's default, and what Prometheus
/// and the counters of the worker are: if a request is lost, the next one has all of it.
package struct MetricsRequest {
    /// The most data points of one metric. Only metrics with a client id can have so many.
    package static let maximumPoints = 1000
    /// The value of AGGREGATION_TEMPORALITY_CUMULATIVE.
    private static let cumulative = 2

    private let resource: Resource
    private let scopeVersion: String
    private let startedAt: Timestamp
    private let at: Timestamp

    /// Makes a request of this instant. The counters began at 0 at `startedAt`.
    package init(resource: Resource, scopeVersion: String, startedAt: Timestamp, at instant: Timestamp) {
        self.resource = resource
        self.scopeVersion = scopeVersion
        self.startedAt = startedAt
        // The clock can have been set back since the start.
        at = max(instant, startedAt)
    }

    package func encode(_ metrics: [Metric]) -> EncodedTelemetry {
        var encoded = EncodedTelemetry()
        encoded.body = resource.envelope(
            resources: "resourceMetrics",
            scopes: "scopeMetrics",
            scopeVersion: scopeVersion
        ) { line in
            line.array("metrics") { array in
                for metric in metrics { write(metric, to: &array, counting: &encoded) }
            }
        }
        return encoded
    }

    private func write(_ metric: Metric, to array: inout JSONArray, counting encoded: inout EncodedTelemetry) {
        switch metric.values {
        case .samples(let samples):
            // OTLP's JSON has no form of these that all collectors read.
            let finite = samples.filter(\.value.isFinite)
            let points = finite.prefix(Self.maximumPoints)
            encoded.items += points.count
            encoded.dropped += finite.count - points.count
            guard !points.isEmpty else { return }
            array.object { line in
                writeHead(of: metric, to: &line)
                writeNumbers(Array(points), of: metric, to: &line)
            }
        case .durations(let durations):
            encoded.items += 1
            array.object { line in
                writeHead(of: metric, to: &line)
                writeHistogram(durations, to: &line)
            }
        }
    }

    private func writeHead(of metric: Metric, to line: inout JSONLine) {
        line.field("name", metric.name)
        line.field("description", metric.help)
        line.field("unit", metric.unit.symbol)
    }

    private func writeNumbers(_ samples: [Metric.Sample], of metric: Metric, to line: inout JSONLine) {
        let isSum = metric.kind != .gauge
        line.object(isSum ? "sum" : "gauge") { line in
            if isSum {
                line.field("aggregationTemporality", Self.cumulative)
                line.field("isMonotonic", metric.kind == .counter)
            }
            line.objects("dataPoints", samples) { sample, line in
                line.attributes(zip(metric.labels, sample.labels).map { Attribute($0, .text($1)) })
                if isSum { line.instant("startTimeUnixNano", startedAt) }
                line.instant("timeUnixNano", at)
                if metric.unit.isWhole, let whole = Int64(exactly: sample.value) {
                    line.longInteger("asInt", whole)
                } else {
                    line.field("asDouble", sample.value)
                }
            }
        }
    }

    private func writeHistogram(_ durations: DurationBuckets, to line: inout JSONLine) {
        let beyondBounds = durations.count - durations.counts.reduce(0, +)
        line.object("histogram") { line in
            line.field("aggregationTemporality", Self.cumulative)
            line.array("dataPoints") { points in
                points.object { line in
                    line.instant("startTimeUnixNano", startedAt)
                    line.instant("timeUnixNano", at)
                    line.longInteger("count", durations.count)
                    line.field("sum", durations.sum.inSeconds)
                    line.strings("bucketCounts", (durations.counts + [beyondBounds]).map(\.description))
                    line.numbers("explicitBounds", DurationBuckets.bounds.map(\.inSeconds))
                }
            }
        }
    }
}
