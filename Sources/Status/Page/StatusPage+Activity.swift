import Base
import Telemetry

/// The charts of the last hour and the last day, and their figures.
extension StatusPage {
    var activitySection: HTML {
        section("Refreshes of all workers", id: "activity") {
            for scale in RecentActivity.Scale.allCases {
                element("h3") { scale == .minute ? "The last hour, by minute" : "The last day, by hour" }
                charts(of: activity.slots(by: scale, at: at).map(\.slot), by: scale)
            }
            element("details", ["id": "figures"]) {
                element("summary", ["id": "figures-summary"]) { "The figures as tables" }
                element("div", ["class": "columns"]) {
                    for scale in RecentActivity.Scale.allCases { figures(by: scale) }
                }
            }
            element("p", ["class": "facts"]) {
                "The last bar is not over yet. Workers store their figures once a minute; those of this worker are "
                    + "newer. Lateness is the longest time from a due time to its try."
            }
        }
    }

    private func charts(of slots: [RecentActivity.Slot], by scale: RecentActivity.Scale) -> HTML {
        element("div", ["class": "charts"]) {
            countChart("Refreshed", of: slots.map(\.refreshed), by: scale, column: 1)
            countChart("Failed", of: slots.map(\.failed), by: scale, column: 2)
            chart(
                "Lateness",
                of: ActivityChart(slots.map(\.maximumLateness.inSeconds), smallest: 0.01),
                by: scale,
                column: 3,
                total: (slots.map(\.maximumLateness).max() ?? .zero).inFineUnits,
                top: "longest",
                current: (slots.last?.maximumLateness ?? .zero).inFineUnits
            ) { $0 > 0 && $0 < 1 ? "\(Int(($0 * 1000).rounded())) ms" : "\(Int($0).grouped) s" }
        }
    }

    private func countChart(_ title: String, of values: [Int], by scale: RecentActivity.Scale, column: Int) -> HTML {
        chart(
            title,
            of: ActivityChart(values.map(Double.init), smallest: 1),
            by: scale,
            column: column,
            total: values.reduce(0, +).grouped,
            top: "at most \((values.max() ?? 0).grouped) in \(scale == .minute ? "a minute" : "an hour")",
            current: (values.last ?? 0).grouped
        ) { Int($0).grouped }
    }

    /// The script shows the value of a bar under the mouse, which it reads from the column of the table.
    private func chart(
        _ title: String,
        of chart: ActivityChart,
        by scale: RecentActivity.Scale,
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

    /// A plain table, because four narrow columns fit each screen, and the roles of
    /// ``table(_:className:columns:rows:)`` would double its size.
    private func figures(by scale: RecentActivity.Scale) -> HTML {
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
                for timed in activity.slots(by: scale, at: at) {
                    element("tr") {
                        element("th", ["scope": "row"]) { element("time") { timed.start.iso8601Seconds } }
                        element("td") { timed.slot.refreshed.grouped }
                        element("td") { timed.slot.failed.grouped }
                        element("td") { timed.slot.maximumLateness.inFineUnits }
                    }
                }
            }
        }
    }
}
