/// Times for people.
extension Timestamp {
    /// Returns the distance from now in one unit, such as `in 20 min` or `3 d ago`.
    package func distance(from now: Timestamp) -> String {
        let seconds = (self - now).wholeMilliseconds / 1000
        let amount =
            switch seconds.magnitude {
            case ..<100: "\(seconds.magnitude) s"
            case ..<(100 * 60): "\(seconds.magnitude / 60) min"
            case ..<(48 * 3600): "\(seconds.magnitude / 3600) h"
            default: "\(seconds.magnitude / 86_400) d"
            }
        guard seconds != 0 else { return "now" }
        return seconds > 0 ? "in \(amount)" : "\(amount) ago"
    }

    /// Returns the distance from now in two units, such as `in 1 h 20 min`.
    package func distanceInTwoUnits(from now: Timestamp) -> String {
        let distance = self - now
        let amount = distance.magnitude
        guard amount >= .seconds(1) else { return "now" }
        return distance > .zero ? "in \(amount.inTwoUnits)" : "\(amount.inTwoUnits) ago"
    }

    package func shown(at now: Timestamp) -> String { "\(iso8601Seconds) (\(distance(from: now)))" }
}
