/// A metric with its values at one instant, for Prometheus and for OpenTelemetry.
///
/// It has one name, OpenTelemetry's. The name in Prometheus follows from it, by the rules with which a collector passes
/// metrics on to Prometheus (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics). So
/// alerts and dashboards are the same whether Prometheus asks the worker or a collector:
///
///     Metric(name: "refresh_worker.vend.duration", unit: .seconds, kind: .histogram, …).prometheusName
///     // refresh_worker_vend_duration_seconds
package struct Metric: Sendable {
    package enum Kind: Sendable {
        /// It only grows, and starts at 0 with the worker.
        case counter
        /// An amount that grows and shrinks. The sum over all workers has a meaning.
        case amount
        /// A state. The sum over workers need not have a meaning.
        case gauge
        case histogram

        /// The type of Prometheus.
        package var prometheusType: String {
            switch self {
            case .counter: "counter"
            case .amount, .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    package struct Sample: Sendable {
        /// The values of the metric's labels, in their order.
        package var labels: [String] = []
        package let value: Double

        package init(labels: [String] = [], value: Double) {
            self.labels = labels
            self.value = value
        }
    }

    package enum Values: Sendable {
        /// One for each combination of labels.
        case samples([Sample])
        case durations(DurationBuckets)
    }

    package let name: String
    package let unit: MetricUnit
    package let kind: Kind
    /// The names of its labels, which OpenTelemetry calls attributes.
    package let labels: [String]
    package let help: String
    package let values: Values
    private let usualPrometheusName: String?

    /// Makes a metric.
    ///
    /// `usualPrometheusName` is its name in Prometheus, if programs for Prometheus have always used another one than
    /// OpenTelemetry's conventions.
    package init(
        name: String,
        usualPrometheusName: String? = nil,
        unit: MetricUnit,
        kind: Kind,
        labels: [String] = [],
        help: String,
        values: Values
    ) {
        self.name = name
        self.usualPrometheusName = usualPrometheusName
        self.unit = unit
        self.kind = kind
        self.labels = labels
        self.help = help
        self.values = values
    }

    package var prometheusName: String {
        if let usualPrometheusName { return usualPrometheusName }
        let base = String(name.map { $0 == "." ? "_" : $0 }) + unit.suffix
        return kind == .counter ? base + "_total" : base
    }
}
