import Base
import Telemetry

/// Metrics in Prometheus' text format, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
///
///     text.gauge("refresh_worker_store_up", value: 1, help: "1 if the database could be read.")
///     // # HELP refresh_worker_store_up 1 if the database could be read.
///     // # TYPE refresh_worker_store_up gauge
///     // refresh_worker_store_up 1
struct PrometheusText: Sendable {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    struct Sample: Sendable {
        var labels: [String] = []
        let value: Double
    }

    struct Metric: Sendable {
        /// A counter only grows, and starts at 0 with the worker.
        enum Kind: String, Sendable {
            case counter
            case gauge
            case histogram
        }

        let name: String
        let kind: Kind
        var labels: [String] = []
        let help: String
    }

    private(set) var bytes: [UInt8] = []
    private(set) var metrics: [Metric] = []

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func counter(_ name: String, by labels: String..., samples: [Sample], help: String) {
        write(samples, of: Metric(name: name, kind: .counter, labels: labels, help: help))
    }

    mutating func gauge(_ name: String, by labels: String..., samples: [Sample], help: String) {
        write(samples, of: Metric(name: name, kind: .gauge, labels: labels, help: help))
    }

    /// Writes a gauge without labels, and omits it without a value.
    mutating func gauge(_ name: String, value: Double?, help: String) {
        var samples: [Sample] = []
        if let value { samples.append(Sample(value: value)) }
        gauge(name, samples: samples, help: help)
    }

    /// Writes a histogram: the number of values up to each bound, their sum and their count.
    mutating func histogram(_ name: String, of durations: DurationBuckets, help: String) {
        let metric = Metric(name: name, kind: .histogram, help: help)
        metrics.append(metric)
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
    private mutating func write(_ samples: [Sample], of metric: Metric) {
        metrics.append(metric)
        guard !samples.isEmpty else { return }
        writeHead(metric)
        for sample in samples {
            writeLine(metric.name, labels: zip(metric.labels, sample.labels), value: sample.value)
        }
    }

    private mutating func writeHead(_ metric: Metric) {
        append("# HELP \(metric.name) ")
        append(metric.help, escapingQuotes: false)
        append("\n# TYPE \(metric.name) \(metric.kind.rawValue)\n")
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
