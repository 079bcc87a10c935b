import Base
import Telemetry

/// Names and values in two columns, for people.
enum FactList {
    static func lines(_ facts: [(name: String, value: String)]) -> [String] {
        let width = facts.map(\.name.count).max() ?? 0
        return facts.map { $0.name.padding(to: width + 2) + $0.value }
    }

    static func time(_ instant: Timestamp?, _ now: Timestamp) -> String {
        instant.map { "\($0.iso8601Seconds) (\(RelativeTime($0, from: now)))" } ?? "-"
    }
}
