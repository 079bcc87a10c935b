/// The counts of the sandbox's requests and answers.
struct SandboxStatistics: Sendable {
    var requests = 0
    var byRoute: [String: Int] = [:]

    /// Token requests by outcome: "ok", an OAuth error, "http_502", "reset", "hang", "client_gone" and so on.
    var byAnswer: [String: Int] = [:]

    /// Token requests that came while their grant already had one in progress.
    var concurrentSameGrant = 0

    /// Token requests in progress: now, and the maximum so far.
    var inFlight = 0
    var maximumInFlight = 0

    /// Requests on hold now.
    var holding = 0

    /// Token requests with a field that a public client must not send.
    var unexpectedFields = 0

    var json: [OrderedJSON.Member] {
        [
            .init(name: "requests", value: .count(requests)),
            .init(name: "by_route", value: Self.object(byRoute)),
            .init(name: "by_answer", value: Self.object(byAnswer)),
            .init(name: "concurrent_same_grant", value: .count(concurrentSameGrant)),
            .init(name: "in_flight", value: .count(inFlight)),
            .init(name: "max_in_flight", value: .count(maximumInFlight)),
            .init(name: "holding", value: .count(holding)),
            .init(name: "unexpected_fields", value: .count(unexpectedFields)),
        ]
    }

    private static func object(_ counts: [String: Int]) -> OrderedJSON {
        .object(counts.sorted { $0.key < $1.key }.map { OrderedJSON.Member(name: $0.key, value: .count($0.value)) })
    }
}
