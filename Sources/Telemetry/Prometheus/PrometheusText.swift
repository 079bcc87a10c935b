private import Base

/// Metrics in Prometheus' text format, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
package struct PrometheusText: Sendable {
    /// The `Content-Type` of the answer.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    package private(set) var bytes: [UInt8] = []

    package init() {}

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Writes a family with one sample per set of label values; omits a family without samples.
    package mutating func family(_ family: PrometheusFamily, _ samples: [(labels: [String], value: Double)]) {
        guard !samples.isEmpty else { return }
        writeHead(family)
        for sample in samples {
            writeLine(family.name, zip(family.labels, sample.labels), sample.value)
        }
    }

    /// Writes a family with one sample without labels.
    package mutating func family(_ family: PrometheusFamily, _ value: Double) {
        self.family(family, [(labels: [], value: value)])
    }

    /// Writes a histogram: the number of values up to each bound, their sum and their count.
    package mutating func family(_ family: PrometheusFamily, _ histogram: DurationBuckets) {
        writeHead(family)
        var total = 0
        for (bound, count) in zip(DurationBuckets.bounds, histogram.counts) {
            total += count
            writeLine("\(family.name)_bucket", [("le", Self.format(bound.inSeconds))], Double(total))
        }
        writeLine("\(family.name)_bucket", [("le", "+Inf")], Double(histogram.count))
        writeLine("\(family.name)_sum", [], histogram.sum.inSeconds)
        writeLine("\(family.name)_count", [], Double(histogram.count))
    }

    private mutating func writeHead(_ family: PrometheusFamily) {
        append("# HELP \(family.name) ")
        append(family.help, escapingQuotes: false)
        append("\n# TYPE \(family.name) \(family.kind.rawValue)\n")
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

    /// Formats a number so that Go's `ParseFloat` can read it; whole numbers have no fraction.
    private static func format(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        guard let whole = Int64(exactly: value) else { return value.description }
        return whole.description
    }
}
