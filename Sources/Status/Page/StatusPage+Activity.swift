import Base
import Telemetry

/// The charts of the last hour.
extension StatusPage {
    var activitySection: HTML {
        let minutes = contents.activity
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
