import Base
import Scheduler
import Storage
import Telemetry

/// The charts of the last hour.
extension StatusPage {
    var activitySection: HTML {
        let minutes = activity
        let lateness = minutes.map(\.longestLateness)
        return section("The last hour of this worker", id: "activity") {
            element("div", ["class": "charts"]) {
                countChart("Refreshed", minutes.map(\.refreshed))
                countChart("Failed", minutes.map(\.failed))
                chart(
                    "Lateness",
                    ActivityChart(lateness.map(\.inSeconds)),
                    total: Self.span(lateness.max() ?? .zero),
                    top: "longest in a minute: \(Self.span(lateness.max() ?? .zero))",
                    current: "the current minute: \(Self.span(lateness.last ?? .zero))"
                )
            }
            element("p", ["class": "facts"]) {
                "Each bar is a minute; the last one is not over yet. The hour is empty before the start of this worker."
                    + " Lateness is the longest time from a due time to its try."
            }
        }
    }

    private func countChart(_ title: String, _ values: [Int]) -> HTML {
        chart(
            title,
            ActivityChart(values.map(Double.init)),
            total: Self.number(values.reduce(0, +)),
            top: "most in a minute: \(Self.number(values.max() ?? 0))",
            current: "the current minute: \(Self.number(values.last ?? 0))"
        )
    }

    private func chart(_ title: String, _ chart: ActivityChart, total: String, top: String, current: String) -> HTML {
        element("figure") {
            element("figcaption") {
                element("span") { title }
                " "
                element("strong") { total }
            }
            element("p", ["class": "top"]) { top }
            element(
                "svg",
                [
                    "class": title.lowercased(), "role": "img",
                    "aria-label": "\(title) in the last hour: \(total); \(top); \(current)",
                    "viewBox": "0 0 \(ActivityChart.width) \(ActivityChart.height)", "preserveAspectRatio": "none",
                ]
            ) {
                if chart.maximum > 0 { element("path", ["d": chart.path]) {} }
            }
            element("p", ["class": "axis", "aria-hidden": "true"]) {
                element("span") { "60 minutes ago" }
                element("span") { "now" }
            }
        }
    }
}

/// The bars of the last hour: one for each minute, the latest at the right.
struct ActivityChart {
    /// The width of a minute, of which the bar takes all but one unit.
    private static let step = 4
    static let width = RecentActivity.minuteCount * step
    static let height = 48

    /// The values, the oldest first.
    ///
    /// If there are fewer than an hour has, the oldest ones are missing.
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

/// The last changes of grants' states.
extension StatusPage {
    var changesSection: HTML {
        section("State changes", id: "changes") {
            if changes.isEmpty {
                element("p") { "This worker has not changed the state of a grant since it started." }
            } else {
                table(
                    "The last \(EngineLog.maximumRecentChanges) that this worker made since it started.",
                    columns: ["Time", "Grant", "Change", "Reason"],
                    rows: changes.prefix(EngineLog.maximumRecentChanges).map { change in
                        [
                            time(change.at), link(to: change.grant, HTML(change.grant.description)),
                            self.change(from: change.from?.rawValue, to: change.to.rawValue),
                            change.reason == .none ? HTML("none") : link(reason: change.reason),
                        ]
                    }
                )
            }
        }
    }

    func change(from: String?, to: String) -> HTML {
        let states = [from == to ? nil : from, to].compactMap(\.self)
        return element("code") {
            states.map { Self.shortened($0, limit: Self.nameLimit) }.joined(separator: " → ")
        }
    }
}
