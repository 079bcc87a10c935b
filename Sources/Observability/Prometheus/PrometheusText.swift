private import Clocks

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
        head(family)
        for sample in samples {
            line(family.name, zip(family.labels, sample.labels), sample.value)
        }
    }

    /// Writes a family with one sample without labels.
    package mutating func family(_ family: PrometheusFamily, _ value: Double) {
        self.family(family, [(labels: [], value: value)])
    }

    /// Writes a histogram: the number of values up to each bound, their sum and their count.
    package mutating func family(_ family: PrometheusFamily, _ histogram: DurationBuckets) {
        head(family)
        var total = 0
        for (bound, count) in zip(DurationBuckets.bounds, histogram.counts) {
            total += count
            line("\(family.name)_bucket", [("le", Self.spelling(of: bound.inSeconds))], Double(total))
        }
        line("\(family.name)_bucket", [("le", "+Inf")], Double(histogram.count))
        line("\(family.name)_sum", [], histogram.sum.inSeconds)
        line("\(family.name)_count", [], Double(histogram.count))
    }

    private mutating func head(_ family: PrometheusFamily) {
        append("# HELP \(family.name) ")
        append(family.help, escapingQuotes: false)
        append("\n# TYPE \(family.name) \(family.kind.rawValue)\n")
    }

    private mutating func line(_ name: String, _ labels: some Sequence<(String, String)>, _ value: Double) {
        append(name)
        var mark = "{"
        for (label, value) in labels {
            append("\(mark)\(label)=\"")
            append(value, escapingQuotes: true)
            append("\"")
            mark = ","
        }
        append("\(mark == "," ? "}" : "") \(Self.spelling(of: value))\n")
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
    private static func spelling(of value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        guard let whole = Int64(exactly: value) else { return value.description }
        return whole.description
    }
}
