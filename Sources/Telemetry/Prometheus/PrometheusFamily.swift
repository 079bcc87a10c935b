/// One Prometheus metric, with its help text from docs/prometheus.md.
package struct PrometheusFamily: Hashable, Sendable {
    package enum Kind: String, Sendable {
        /// It only grows, and starts at 0 with the worker.
        case counter
        case gauge
        case histogram
    }

    package let name: String
    package let kind: Kind
    /// The labels of each sample, in output order.
    package let labels: [String]
    package let help: String

    init(_ name: String, _ kind: Kind, labels: [String] = [], _ help: String) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.help = help
    }
}
