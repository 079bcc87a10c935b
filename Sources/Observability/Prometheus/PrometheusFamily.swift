/// One metric as Prometheus names it, with what docs/prometheus.md says of it.
package struct PrometheusFamily: Hashable, Sendable {
    package enum Kind: String, Sendable {
        /// It only grows, and begins at 0 when the worker starts.
        case counter
        case gauge
        case histogram
    }

    package let name: String
    package let kind: Kind
    /// The labels of each sample, in the order in which they are written.
    package let labels: [String]
    package let help: String

    init(_ name: String, _ kind: Kind, labels: [String] = [], _ help: String) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.help = help
    }
}
