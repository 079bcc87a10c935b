import Base
import Telemetry

/// Metrics in Prometheus' text format, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
///
///     PrometheusText(list.metrics).text
///     // # HELP refresh_worker_store_up 1 if the database could be read.
///     // # TYPE refresh_worker_store_up gauge
///     // refresh_worker_store_up 1
struct PrometheusText: Sendable {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var bytes: [UInt8] = []

    init(_ metrics: [Metric]) {
        for metric in metrics {
            switch metric.values {
            case .samples(let samples): write(samples, of: metric)
            case .durations(let durations): write(durations, of: metric)
            }
        }
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Writes a histogram: the number of values up to each bound, their sum and their count.
    private mutating func write(_ durations: DurationBuckets, of metric: Metric) {
        let name = metric.prometheusName
        writeHead(metric)
        var total = 0
        for (bound, count) in zip(DurationBuckets.bounds, durations.counts) {
            total += count
            writeLine("\(name)_bucket", labels: [("le", Self.format(bound.inSeconds))], value: Double(total))
        }
        writeLine("\(name)_bucket", labels: [("le", "+Inf")], value: Double(durations.count))
        writeLine("\(name)_sum", labels: [], value: durations.sum.inSeconds)
        writeLine("\(name)_count", labels: [], value: Double(durations.count))
    }

    /// Writes one sample per set of label values, and omits a metric without samples.
    private mutating func write(_ samples: [Metric.Sample], of metric: Metric) {
        guard !samples.isEmpty else { return }
        writeHead(metric)
        for sample in samples {
            writeLine(metric.prometheusName, labels: zip(metric.labels, sample.labels), value: sample.value)
        }
    }

    private mutating func writeHead(_ metric: Metric) {
        append("# HELP \(metric.prometheusName) ")
        append(metric.help, escapingQuotes: false)
        append("\n# TYPE \(metric.prometheusName) \(metric.kind.prometheusType)\n")
    }

    private mutating func writeLine(_ name: String, labels: some Sequence<(String, String)>, value: Double) {
        append(name)
        var hasLabels = false
        for (label, labelValue) in labels {
            append(hasLabels ? "," : "{")
            append("\(label)=\"")
            append(labelValue, escapingQuotes: true)
            append("\"")
            hasLabels = true
        }
        if hasLabels { append("}") }
        append(" \(Self.format(value))\n")
    }

    private mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    /// Escapes as the format requires: backslashes and line feeds everywhere, quotes in label values.
    private mutating func append(_ text: String, escapingQuotes: Bool) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): append("\\\\")
            case UInt8(ascii: "\n"): append("\\n")
            case UInt8(ascii: "\"") where escapingQuotes: append("\\\"")
            default: bytes.append(byte)
            }
        }
    }

    /// Formats a number so that Go's `ParseFloat` can read it.
    private static func format(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        guard value.isFinite else { return value < 0 ? "-Inf" : "+Inf" }
        if let whole = Int64(exactly: value) { return whole.description }
        return value.description
    }
}
