package import Base
import Storage

/// A kind of answer without a token that the endpoint gave one client id lately, for the people who ask what it
/// answers.
package struct ClientFailure: Hashable, Sendable {
    /// The number of kinds that are kept: an outage often alternates between two.
    static let maximumKinds = 3
    /// The pause after which the next answer of the kind begins a new series.
    static let maximumPause: Duration = .seconds(600)
    /// The time for which a failure is shown.
    static let shownFor: Duration = .seconds(86_400)

    /// Google's code, or the kind of fault, as in `http_503` or `timeout`.
    package var code: String
    /// The HTTP status, or `nil` if no answer came.
    package var status: Int?
    /// The time of the first answer of the series.
    package var since: Timestamp
    package var lastAt: Timestamp
    package var count: Int
}

/// The kinds of one client id, that of the latest answer first.
extension [ClientFailure] {
    mutating func record(_ code: String, status: Int?, at now: Timestamp) {
        let former = first { $0.code == code && $0.status == status }
        removeAll { $0.code == code && $0.status == status }
        var failure = ClientFailure(code: code, status: status, since: now, lastAt: now, count: 1)
        if let former, now - former.lastAt <= ClientFailure.maximumPause {
            failure.since = Swift.min(former.since, now)
            failure.count = Swift.min(former.count + 1, 1_000_000)
        }
        self = [failure] + prefix(ClientFailure.maximumKinds - 1)
    }

    init(_ stored: JSONValue?) {
        self = (stored?.array ?? []).prefix(ClientFailure.maximumKinds).compactMap { entry in
            guard let code = entry["code"]?.string, let since = entry["since"]?.timestamp,
                let lastAt = entry["last_at"]?.timestamp, let count = entry["count"]?.boundedCount
            else { return nil }
            let status = entry["status"]?.boundedCount
            return ClientFailure(
                code: GrantReason(rawValue: code).rawValue,
                status: status,
                since: since,
                lastAt: lastAt,
                count: count
            )
        }
    }

    func write(into line: inout JSONLine) {
        line.objects("failures", self) { failure, object in
            object.field("code", failure.code)
            if let status = failure.status { object.field("status", status) }
            object.field("since", failure.since.milliseconds)
            object.field("last_at", failure.lastAt.milliseconds)
            object.field("count", failure.count)
        }
    }
}

extension ClientFailure {
    /// `true` if it is the endpoint's or the network's fault, or a limit, and not about a grant.
    var isOfEndpoint: Bool {
        guard let status else { return true }
        return status >= 500 || status == 429
    }

    /// The status and the code, for people.
    package var name: String {
        guard let status else { return code }
        return code == "http_\(status)" ? "HTTP \(status)" : "HTTP \(status) \(code)"
    }
}
