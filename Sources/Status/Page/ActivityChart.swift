import Telemetry

/// The bars of the last hour: one for each minute, the latest at the right.
struct ActivityChart {
    /// The width of a minute, of which the bar takes all but one unit.
    private static let step = 4
    static let width = RecentActivity.minuteCount * step
    static let height = 48

    /// The values, the oldest first; if there are fewer than an hour has, the oldest ones are missing.
    private let values: ArraySlice<Double>
    let maximum: Double

    init(_ values: [Double]) {
        self.values = values.suffix(RecentActivity.minuteCount)
        maximum = values.suffix(RecentActivity.minuteCount).max() ?? 0
    }

    /// The outline of all bars.
    ///
    /// One path is a tenth of sixty elements. A value above zero has a bar at least one unit high, so that a single
    /// failure can be seen beside hundreds.
    var path: String {
        var path = ""
        for (index, value) in values.enumerated() where value > 0 {
            let left = (RecentActivity.minuteCount - values.count + index) * Self.step
            let height = max(1, Int((value / maximum * Double(Self.height)).rounded()))
            path += "M\(left) \(Self.height)v-\(height)h\(Self.step - 1)v\(height)z"
        }
        return path
    }
}
