import Base
import Testing

@Suite("Texts for people")
struct TextForPeopleTests {
    @Test(
        "of numbers",
        arguments: [(0, "0"), (999, "999"), (1000, "1,000"), (10_000_000, "10,000,000"), (-1234, "-1,234")]
    )
    func numbers(value: Int, text: String) {
        #expect(value.grouped == text)
    }

    @Test(
        "of spans",
        arguments: [
            (Duration.zero, "0 s"), (.milliseconds(7), "7 ms"), (.milliseconds(1000), "1.0 s"),
            (.milliseconds(9999), "9.9 s"), (.seconds(10), "10 s"), (.seconds(75), "1 min 15 s"),
        ]
    )
    func spans(span: Duration, text: String) {
        #expect(span.inFineUnits == text)
    }

    @Test(
        "of spans in whole units",
        arguments: [(1, "1 second"), (30, "30 seconds"), (90, "90 seconds"), (300, "5 minutes"), (259_200, "3 days")]
    )
    func wholeUnits(seconds: Int, text: String) {
        #expect(Duration.seconds(seconds).inWholeUnits == text)
    }

    @Test(
        "of distances in two units",
        arguments: [(0, "now"), (-999, "now"), (-1000, "1 s ago"), (7_200_000, "in 2 h")] as [(Int64, String)]
    )
    func distancesInTwoUnits(milliseconds: Int64, text: String) {
        let now = Timestamp(secondsSince1970: 1_800_000_000)
        #expect((now + .milliseconds(milliseconds)).distanceInTwoUnits(from: now) == text)
    }

    @Test(
        "of distances in one unit",
        arguments: [
            (0, "now"), (12, "in 12 s"), (-99, "99 s ago"), (41 * 60, "in 41 min"), (-3 * 3600, "3 h ago"),
            (86_400 * 3, "in 3 d"), (100, "in 1 min"),
        ] as [(Int64, String)]
    )
    func distances(seconds: Int64, text: String) {
        let now = Timestamp(secondsSince1970: 1_800_000_000)
        #expect((now + .seconds(seconds)).distance(from: now) == text)
    }
}
