import Base
import Storage

/// The errors since the last success of a proven grant whose cause might be the client or the grant
/// (`unauthorized_client` and `invalid_request`), or is the app, which Google cannot verify.
struct ConsecutiveClientErrors: Hashable, Sendable {
    /// How long a row must last at least. While other grants succeed now and then, a row does not last as long.
    static let minimumSpan: Duration = .seconds(60)

    var since: BootInstant?
    var count = 0
    var grants: [Int64] = []

    /// Adds an error of a grant, and returns `true` if the row is long enough to be the client's fault.
    mutating func add(_ grant: GrantID, at now: BootInstant) -> Bool {
        since = since ?? now
        count = min(count + 1, 1_000_000)
        if grants.count < Breaker.grantsToOpen, !grants.contains(grant.rawValue) { grants.append(grant.rawValue) }
        guard count >= Breaker.failuresToOpen, grants.count >= Breaker.grantsToOpen else { return false }
        return hasLasted(at: now)
    }

    /// `true` if the row has lasted for the minimum.
    func hasLasted(at now: BootInstant) -> Bool {
        guard let since else { return false }
        return now - since >= Self.minimumSpan
    }
}

extension ConsecutiveClientErrors {
    init(_ body: JSONValue?) {
        since = body?["since"]?.instant
        count = body?["count"]?.boundedCount ?? 0
        grants = Array((body?["grants"]?.grants ?? []).prefix(Breaker.grantsToOpen))
    }

    func write(into line: inout JSONLine) {
        if let since { line.field("since", since.milliseconds) }
        line.field("count", count)
        line.field("grants", grants)
    }
}
