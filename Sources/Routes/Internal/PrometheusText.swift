import Base
import Telemetry

/// Metrics in Prometheus' text format, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
struct PrometheusText: Sendable {
    /// The `Content-Type` of the answer.
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// The values of a sample's labels, and its value.
    typealias Sample = (labels: [String], value: Double)

    /// A metric, with or without samples.
    ///
    /// Its kind is `counter`, which only grows and starts at 0 with the worker, `gauge` or `histogram`.
    typealias Metric = (name: String, kind: String, labels: [String], help: String)

    private(set) var bytes: [UInt8] = []
    private(set) var metrics: [Metric] = []

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func counter(_ name: String, by labels: String..., samples: [Sample], help: String) {
        write((name: name, kind: "counter", labels: labels, help: help), samples)
    }

    mutating func gauge(_ name: String, by labels: String..., samples: [Sample], help: String) {
        write((name: name, kind: "gauge", labels: labels, help: help), samples)
    }

    /// Writes a gauge without labels, and omits it without a value.
    mutating func gauge(_ name: String, _ value: Double?, _ help: String) {
        gauge(name, samples: value.map { [([], $0)] } ?? [], help: help)
    }

    /// Writes a histogram: the number of values up to each bound, their sum and their count.
    mutating func histogram(_ name: String, _ histogram: DurationBuckets, _ help: String) {
        let metric = (name: name, kind: "histogram", labels: [String](), help: help)
        metrics.append(metric)
        writeHead(metric)
        var total = 0
        for (bound, count) in zip(DurationBuckets.bounds, histogram.counts) {
            total += count
            writeLine("\(name)_bucket", [("le", Self.format(bound.inSeconds))], Double(total))
        }
        writeLine("\(name)_bucket", [("le", "+Inf")], Double(histogram.count))
        writeLine("\(name)_sum", [], histogram.sum.inSeconds)
        writeLine("\(name)_count", [], Double(histogram.count))
    }

    /// Writes one sample per set of label values, and omits a metric without samples.
    private mutating func write(_ metric: Metric, _ samples: [Sample]) {
        metrics.append(metric)
        guard !samples.isEmpty else { return }
        writeHead(metric)
        for sample in samples { writeLine(metric.name, zip(metric.labels, sample.labels), sample.value) }
    }

    private mutating func writeHead(_ metric: Metric) {
        append("# HELP \(metric.name) ")
        append(metric.help, escapingQuotes: false)
        append("\n# TYPE \(metric.name) \(metric.kind)\n")
    }

    private mutating func writeLine(_ name: String, _ labels: some Sequence<(String, String)>, _ value: Double) {
        append(name)
        var separator = "{"
        for (label, value) in labels {
            append("\(separator)\(label)=\"")
            append(value, escapingQuotes: true)
            append("\"")
            separator = ","
        }
        append("\(separator == "," ? "}" : "") \(Self.format(value))\n")
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
    ///
    /// Whole numbers have no fraction.
    private static func format(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        guard let whole = Int64(exactly: value) else { return value.description }
        return whole.description
    }
}
