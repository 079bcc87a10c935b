import Base
import Testing

@testable import Status
@testable import Telemetry

@Suite("The charts of the last hour")
struct ChartTests {
    @Test("have a bar for each minute that is not zero, the latest at the right")
    func bars() {
        var values = [Double](repeating: 0, count: 60)
        values[0] = 10
        values[58] = 5
        values[59] = 20
        #expect(ActivityChart(values).path == "M0 48v-24h3v24zM232 48v-12h3v12zM236 48v-48h3v48z")
        #expect(ActivityChart(values).maximum == 20)
    }

    @Test("show one among many, and nothing for none")
    func extremes() {
        #expect(ActivityChart([1, 100_000]).path == "M232 48v-1h3v1zM236 48v-48h3v48z")
        #expect(ActivityChart([0, 0]).path.isEmpty)
        #expect(ActivityChart([]).path.isEmpty && ActivityChart([]).maximum == 0)
    }

    @Test("show only the last sixty minutes")
    func window() {
        #expect(ActivityChart([7] + [Double](repeating: 0, count: 60)).path.isEmpty)
    }

    @Test("say their numbers in words")
    func words() {
        var contents = Example.quiet()
        contents.activity[3] = RecentActivity.Minute(refreshed: 1200, failed: 0, longestLateness: .milliseconds(350))
        contents.activity[59] = RecentActivity.Minute(refreshed: 34, failed: 2, longestLateness: .milliseconds(2450))
        let labels = Markup(contents.html).values(of: "aria-label")
        #expect(
            labels == [
                "Refreshed in the last hour: 1,234; most in a minute: 1,200; the current minute: 34",
                "Failed in the last hour: 2; most in a minute: 2; the current minute: 2",
                "Lateness in the last hour: 2.4 s; longest in a minute: 2.4 s; the current minute: 2.4 s",
            ]
        )
    }
}
