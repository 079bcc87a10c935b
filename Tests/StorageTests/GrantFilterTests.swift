import Testing

@testable import Base
@testable import Storage

@Suite("The filter of a list of grants")
struct GrantFilterTests {
    @Test("fits the grants that fit everything that is set")
    func matches() throws {
        let grant = try Sample.grant(1)
        let end = start + .seconds(3600)
        let filters: [(GrantFilter, Bool)] = [
            (GrantFilter(), true),
            (GrantFilter(state: .active), true),
            (GrantFilter(state: .retrying), false),
            (GrantFilter(reason: GrantReason.none), true),
            (GrantFilter(reason: .clientMismatch), false),
            (GrantFilter(clientID: "client 1", isExpired: true), true),
            (GrantFilter(clientID: "client 0", isExpired: true), false),
            (GrantFilter(since: grant.since), true),
            (GrantFilter(since: grant.since + .milliseconds(1)), false),
        ]
        for (filter, matches) in filters { #expect(filter.matches(grant, at: end) == matches, "\(filter)") }
        let expired = GrantFilter(isExpired: true)
        #expect(!expired.matches(grant, at: end - .seconds(1)))
        #expect(expired.matches(try Sample.grant(1, accessToken: nil), at: start), "it never had a token")
    }
}
