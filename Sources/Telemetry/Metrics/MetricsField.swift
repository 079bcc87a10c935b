/// A field of an event in the metrics log, as docs/metrics-log.md describes it.
package struct MetricsField: Hashable, Sendable {
    package enum Kind: String, Sendable {
        case string
        /// A whole number.
        case integer
        /// A number that may have a fraction.
        case number
        case boolean
    }

    package enum Presence: String, Sendable {
        case always
        /// The field is omitted if it has no value.
        case sometimes
    }

    package let name: String
    package let kind: Kind
    package let presence: Presence
    package let meaning: String

    static func always(_ name: String, _ kind: Kind, _ meaning: String) -> MetricsField {
        MetricsField(name: name, kind: kind, presence: .always, meaning: meaning)
    }

    static func sometimes(_ name: String, _ kind: Kind, _ meaning: String) -> MetricsField {
        MetricsField(name: name, kind: kind, presence: .sometimes, meaning: meaning)
    }
}
