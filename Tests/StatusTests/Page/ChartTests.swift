import Base
import Testing

@testable import Status
@testable import Telemetry

@Suite("The charts of refreshes")
struct ChartTests {
    @Test("have a bar for each slot that is not zero, the latest at the right")
    func bars() {
        var values = [Double](repeating: 0, count: 60)
        values[0] = 10
        values[58] = 5
        values[59] = 20
        let chart = ActivityChart(values, smallest: 1)
        #expect(chart.path == "M0 48v-24h3v24zM232 48v-12h3v12zM236 48v-48h3v48z")
        #expect(chart.width == 240)
    }

    @Test("show one among many, and nothing for none")
    func extremes() {
        #expect(ActivityChart([1, 100_000], smallest: 1).path == "M0 48v-1h3v1zM4 48v-48h3v48z")
        #expect(ActivityChart([0, 0], smallest: 1).path.isEmpty)
    }

    @Test(
        "have an axis that ends at a short number, as its half is",
        arguments: [(0, 2), (1, 2), (3, 4), (5, 6), (10, 10), (11, 20), (850, 1000), (100_001, 200_000)]
    )
    func axis(largest: Double, top: Double) {
        #expect(ActivityChart([0, largest], smallest: 1).top == top)
    }

    @Test("say their numbers in words, and in tables")
    func words() {
        var contents = Example.quiet()
        contents.activity = Example.activity([
            (.minute, 3, 1200, 0, 350), (.minute, 59, 34, 2, 2450), (.hour, 22, 7000, 0, 0), (.hour, 23, 1234, 2, 2450),
        ])
        let html = contents.html
        let labels = Markup(html).values(of: "aria-label")
        #expect(
            labels == [
                "Refreshed in the last hour: 1,234; at most 1,200 in a minute; this minute: 34",
                "Failed in the last hour: 2; at most 2 in a minute; this minute: 2",
                "Lateness in the last hour: 2.4 s; longest; this minute: 2.4 s",
                "Refreshed in the last day: 8,234; at most 7,000 in an hour; this hour: 1,234",
                "Failed in the last day: 2; at most 2 in an hour; this hour: 2",
                "Lateness in the last day: 2.4 s; longest; this hour: 2.4 s",
            ]
        )
        #expect(html.contains("</time></th><td>1,200</td><td>0</td><td>350 ms</td></tr>"))
        #expect(html.ranges(of: "<tr><th scope=\"row\">").count == 60 + 24)
    }
}
