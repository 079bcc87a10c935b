import Base

/// The distance of an instant from now, in a unit that suits people.
struct RelativeTime: CustomStringConvertible {
    let description: String

    init(_ instant: Timestamp, from now: Timestamp) {
        let seconds = (instant - now).wholeMilliseconds / 1000
        let amount: String
        switch seconds.magnitude {
        case 0:
            description = "now"
            return
        case ..<100: amount = "\(seconds.magnitude) s"
        case ..<(100 * 60): amount = "\(seconds.magnitude / 60) min"
        case ..<(48 * 3600): amount = "\(seconds.magnitude / 3600) h"
        default: amount = "\(seconds.magnitude / 86_400) d"
        }
        description = seconds > 0 ? "in \(amount)" : "\(amount) ago"
    }
}
