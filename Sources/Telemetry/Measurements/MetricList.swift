/// Metrics in the order in which they are shown.
///
///     var list = MetricList()
///     list.gauge("refresh_worker.store.up", value: 1, help: "1 if the database could be read.")
package struct MetricList: Sendable {
    package private(set) var metrics: [Metric] = []

    package init() {}

    package mutating func add(_ metric: Metric) { metrics.append(metric) }

    package mutating func counter(
        _ name: String,
        in unit: MetricUnit,
        by labels: String...,
        samples: [Metric.Sample],
        help: String
    ) {
        add(Metric(name: name, unit: unit, kind: .counter, labels: labels, help: help, values: .samples(samples)))
    }

    package mutating func gauge(
        _ name: String,
        in unit: MetricUnit = .none,
        by labels: String...,
        samples: [Metric.Sample],
        help: String
    ) {
        add(Metric(name: name, unit: unit, kind: .gauge, labels: labels, help: help, values: .samples(samples)))
    }

    /// Adds a gauge without labels. It has no sample without a value.
    package mutating func gauge(_ name: String, in unit: MetricUnit = .none, value: Double?, help: String) {
        var samples: [Metric.Sample] = []
        if let value { samples.append(Metric.Sample(value: value)) }
        gauge(name, in: unit, samples: samples, help: help)
    }

    package mutating func histogram(_ name: String, of durations: DurationBuckets, help: String) {
        add(Metric(name: name, unit: .seconds, kind: .histogram, help: help, values: .durations(durations)))
    }
}
