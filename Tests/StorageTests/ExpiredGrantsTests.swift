import Base
import Testing

@testable import Storage

@Suite("Samples of expired grants")
struct ExpiredGrantsTests {
    private typealias Sample = ExpiredGrants.Sample

    @Test("A small set is read as a whole and counted exactly")
    func exact() {
        var sample = Sample(total: Sample.limit)
        #expect(sample.ranges.count == 1)
        #expect(sample.ranges[0] == (0, .max, Sample.limit))
        sample.record(10, expired: 3, oldest: start, client: "a")
        sample.record(5, expired: 0, oldest: start, client: "b")
        var expired = ExpiredGrants()
        sample.add(to: &expired)
        #expect(expired == ExpiredGrants(clients: ["a": ExpiredGrants.Client(count: 3, oldest: start)]))
    }

    @Test("A large set is read in slices that cover all ids, and its count is estimated")
    func estimated() throws {
        var sample = Sample(total: 10_000_000)
        let ranges = sample.ranges
        #expect(ranges.first?.first == 0 && ranges.last?.last == .max)
        for (one, next) in zip(ranges, ranges.dropFirst()) { #expect(one.last + 1 == next.first) }
        #expect(ranges.reduce(0) { $0 + $1.limit } == Sample.limit)
        for (index, range) in ranges.enumerated() {
            let at = start + .seconds(Int64(index))
            sample.record(range.limit, expired: index < 32 ? range.limit : 0, oldest: at, client: "a")
        }
        var expired = ExpiredGrants()
        sample.add(to: &expired)
        #expect(expired.count == 5_000_000)
        #expect(expired.oldest == start)
    }

    @Test("Grants of one client are added up")
    func sum() {
        var expired = ExpiredGrants()
        expired.add(2, oldest: start + .seconds(9), client: "a")
        expired.add(1, oldest: start, client: "a")
        expired.add(0, oldest: start - .seconds(9), client: "a")
        expired.add(4, oldest: start + .seconds(1), client: "b")
        #expect(expired.count == 7 && expired.oldest == start)
        #expect(expired.clients["a"]?.count == 3)
    }
}
