/// The unit of a metric's values, as OpenTelemetry writes it (https://ucum.org/ucum).
package enum MetricUnit: Hashable, Sendable {
    case seconds
    case bytes
    /// A number of things, such as `{grant}`.
    case count(of: String)
    /// A number of things each second.
    case perSecond(of: String)
    /// Such as a value that is 1 or 0. Not the unit `1`, from which a collector makes the suffix `_ratio`.
    case none

    package var symbol: String {
        switch self {
        case .seconds: "s"
        case .bytes: "By"
        case .count(let thing): "{\(thing)}"
        case .perSecond(let thing): "{\(thing)}/s"
        case .none: ""
        }
    }

    /// The end of the metric's name in Prometheus.
    var suffix: String {
        switch self {
        case .seconds: "_seconds"
        case .bytes: "_bytes"
        case .perSecond: "_per_second"
        case .count, .none: ""
        }
    }

    /// `true` if all values are whole numbers.
    package var isWhole: Bool {
        switch self {
        case .bytes, .count, .none: true
        case .seconds, .perSecond: false
        }
    }
}
