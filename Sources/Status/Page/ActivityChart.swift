/// The bars of a chart: one for each minute or hour, the latest at the right.
struct ActivityChart {
    /// The width of a slot, of which the bar takes all but one unit.
    private static let step = 4
    static let height = 48

    /// The values, the oldest first.
    private let values: [Double]
    /// The value at the top of the axis: the largest one, rounded up so that its half is a short number too.
    let top: Double

    /// `smallest` is the unit of the axis for small values.
    init(_ values: [Double], smallest: Double) {
        self.values = values
        let largest = values.max() ?? 0
        var unit = smallest
        while unit * 10 < largest { unit *= 10 }
        top = [2, 4, 6, 8, 10].map { $0 * unit }.first { $0 >= largest } ?? largest
    }

    var width: Int { values.count * Self.step }

    /// The outline of all bars.
    ///
    /// One path is a tenth of sixty elements. A value above zero has a bar at least one unit high, so that a single
    /// failure can be seen beside hundreds.
    var path: String {
        var path = ""
        for (index, value) in values.enumerated() where value > 0 {
            let height = max(1, Int((value / top * Double(Self.height)).rounded()))
            path += "M\(index * Self.step) \(Self.height)v-\(height)h\(Self.step - 1)v\(height)z"
        }
        return path
    }
}
