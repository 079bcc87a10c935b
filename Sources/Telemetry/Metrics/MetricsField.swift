/// A field of an event in the metrics log, as docs/metrics-log.md describes it.
struct MetricsField: Hashable, Sendable {
    let name: String
    /// Its type in JSON, where `integer` is a whole `number`, followed by a `?` if the field is left out without a
    /// value.
    let type: String
    let meaning: String
}
