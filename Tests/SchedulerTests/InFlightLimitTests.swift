import Clocks
import Scheduler
import Testing

struct InFlightLimitTests {
    private let start = BootInstant(milliseconds: 1_000_000)

    @Test(
        "The limit is what the rate asks for at the quickest latency, twice over",
        arguments: [
            (200.0, 100, 64), (3_400.0, 1, 64), (3_400.0, 50, 340), (3_400.0, 100, 512), (100_000.0, 1, 200),
        ]
    )
    func limit(rate: Double, milliseconds: Int, expected: Int) {
        var limit = InFlightLimit(ceiling: 512)
        #expect(limit.limit(at: rate) == 64, "nothing is known yet")
        limit.learn(.milliseconds(milliseconds), at: start)
        limit.learn(.milliseconds(milliseconds * 30), at: start)
        #expect(limit.limit(at: rate) == expected)
    }

    @Test("A ceiling below the floor holds")
    func ceiling() {
        #expect(InFlightLimit(ceiling: 1).limit(at: 100) == 1)
    }

    @Test("An endpoint that became slower is noticed after a while")
    func forgets() {
        var limit = InFlightLimit(ceiling: 512)
        limit.learn(.milliseconds(1), at: start)
        for second in 1...30 { limit.learn(.milliseconds(100), at: start + .seconds(second)) }
        #expect(limit.limit(at: 2_000) == 400)
    }
}
