import Base
import Testing

@testable import Status

@Suite("The forms of values")
struct ValueTests {
    @Test(
        "of numbers",
        arguments: [(0, "0"), (999, "999"), (1000, "1,000"), (10_000_000, "10,000,000"), (-1234, "-1,234")]
    )
    func numbers(value: Int, text: String) {
        #expect(StatusPage.number(value) == text)
    }

    @Test(
        "of spans",
        arguments: [
            (Duration.zero, "0 s"), (.milliseconds(7), "7 ms"), (.milliseconds(1000), "1.0 s"),
            (.milliseconds(9999), "9.9 s"), (.seconds(10), "10 s"), (.seconds(75), "1 min 15 s"),
        ]
    )
    func spans(span: Duration, text: String) {
        #expect(StatusPage.span(span) == text)
    }

    @Test(
        "of distances",
        arguments: [(0, "now"), (-999, "now"), (-1000, "1 s ago"), (7_200_000, "in 2 h")] as [(Int64, String)]
    )
    func distances(milliseconds: Int64, text: String) {
        let now = Example.now
        #expect(StatusPage.distance(from: now, to: now + .milliseconds(milliseconds)) == text)
    }

    @Test("of the runbook's lines")
    func markdown() {
        let line = "**Look:** `a < b`, [the *page*](x.md#y) and a [ or a ` or 2 * 3 & <b>"
        #expect(
            HTML(markdown: line).markup
                == "<strong>Look:</strong> <code>a &lt; b</code>, the *page* and a [ or a ` or 2 * 3 &amp; &lt;b&gt;"
        )
    }
}
