import Base
import Scheduler
import Storage
import Telemetry

/// The charts of the last hour and the last day, and their figures.
extension StatusPage {
    var activitySection: HTML {
        section("Refreshes of all workers", id: "activity") {
            for scale in RecentActivity.Scale.allCases {
                element("h3") { scale == .minute ? "The last hour, by minute" : "The last day, by hour" }
                charts(activity.slots(by: scale, at: at).map(\.slot), scale)
            }
            element("details", ["id": "figures"]) {
                element("summary", ["id": "figures-summary"]) { "The figures as tables" }
                element("div", ["class": "columns"]) {
                    for scale in RecentActivity.Scale.allCases { figures(scale) }
                }
            }
            element("p", ["class": "facts"]) {
                "The last bar is not over yet. Workers store their figures once a minute; those of this worker are "
                    + "newer. Lateness is the longest time from a due time to its try."
            }
        }
    }

    private func charts(_ slots: [RecentActivity.Slot], _ scale: RecentActivity.Scale) -> HTML {
        element("div", ["class": "charts"]) {
            countChart("Refreshed", slots.map(\.refreshed), scale, column: 1)
            countChart("Failed", slots.map(\.failed), scale, column: 2)
            chart(
                "Lateness",
                ActivityChart(slots.map(\.longestLateness.inSeconds), smallest: 0.01),
                scale,
                column: 3,
                total: Self.span(slots.map(\.longestLateness).max() ?? .zero),
                top: "longest",
                current: Self.span(slots.last?.longestLateness ?? .zero)
            ) { $0 > 0 && $0 < 1 ? "\(Int(($0 * 1000).rounded())) ms" : "\(Self.number(Int($0))) s" }
        }
    }

    private func countChart(_ title: String, _ values: [Int], _ scale: RecentActivity.Scale, column: Int) -> HTML {
        chart(
            title,
            ActivityChart(values.map(Double.init), smallest: 1),
            scale,
            column: column,
            total: Self.number(values.reduce(0, +)),
            top: "at most \(Self.number(values.max() ?? 0)) in \(scale == .minute ? "a minute" : "an hour")",
            current: Self.number(values.last ?? 0)
        ) { Self.number(Int($0)) }
    }

    /// The script shows the value of a bar under the mouse, which it reads from the column of the table.
    private func chart(
        _ title: String,
        _ chart: ActivityChart,
        _ scale: RecentActivity.Scale,
        column: Int,
        total: String,
        top: String,
        current: String,
        _ label: (Double) -> String
    ) -> HTML {
        let summary = "\(top); this \(scale.rawValue): \(current)"
        let span = scale == .minute ? "hour" : "day"
        return element("figure") {
            element("figcaption") {
                element("span") { title }
                " "
                element("strong") { total }
            }
            element("p", ["class": "top"]) { summary }
            element("div", ["class": "plot"]) {
                element("p", ["class": "scale", "aria-hidden": "true"]) {
                    for part in [1, 0.5, 0] { element("span") { label(chart.top * part) } }
                }
                element(
                    "svg",
                    [
                        "class": title.lowercased(), "role": "img", "data-table": scale.rawValue,
                        "data-column": "\(column)",
                        "aria-label": "\(title) in the last \(span): \(total); \(summary)",
                        "viewBox": "0 0 \(chart.width) \(ActivityChart.height)", "preserveAspectRatio": "none",
                    ]
                ) {
                    if !chart.path.isEmpty { element("path", ["d": chart.path]) {} }
                }
                element("p", ["class": "axis", "aria-hidden": "true"]) {
                    element("span") { scale == .minute ? "60 minutes ago" : "24 hours ago" }
                    element("span") { scale == .minute ? "30" : "12" }
                    element("span") { "now" }
                }
            }
        }
    }

    /// A plain table, because four narrow columns fit each screen, and the roles of ``table(_:className:columns:rows:)``
    /// would double its size.
    private func figures(_ scale: RecentActivity.Scale) -> HTML {
        element("table", ["class": "figures", "id": scale.rawValue]) {
            element("caption") { scale == .minute ? "By minute" : "By hour" }
            element("thead") {
                element("tr") {
                    for column in ["Start", "Refreshed", "Failed", "Lateness"] {
                        element("th", ["scope": "col"]) { column }
                    }
                }
            }
            element("tbody") {
                for (start, slot) in activity.slots(by: scale, at: at) {
                    element("tr") {
                        element("th", ["scope": "row"]) { element("time") { start.iso8601Seconds } }
                        element("td") { Self.number(slot.refreshed) }
                        element("td") { Self.number(slot.failed) }
                        element("td") { Self.span(slot.longestLateness) }
                    }
                }
            }
        }
    }
}

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
