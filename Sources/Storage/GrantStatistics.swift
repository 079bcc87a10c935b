package import Base

/// The numbers of grants in each state, of those that are due, and of those that might end soon.
package struct GrantStatistics: Hashable, Sendable {
    /// The time before the end of a refresh token's own lifetime at which a warning begins: long enough to reach
    /// the user.
    package static let warningBeforeEnd: Duration = .seconds(3 * 86_400)
    /// Google ends a refresh token after six months without use
    /// (https://developers.google.com/identity/protocols/oauth2#expiration).
    ///
    /// The warning begins after five.
    package static let idleBeforeWarning: Duration = .seconds(150 * 86_400)

    package static let empty = GrantStatistics()

    package var byState: [GrantState: Int] = [:]
    package var due = 0
    package var oldestDueAt: Timestamp?
    /// The number of connected grants whose refresh token expires soon.
    package var refreshTokensEnding = 0
    /// The number of those whose refresh token expires within a day.
    package var refreshTokensEndingWithinDay = 0
    /// The number of connected grants that were not refreshed for so long that Google might end them.
    package var idle = 0
    /// The connected grants without a valid access token.
    package var expired = ExpiredGrants()
    /// The number of grants of each client id whose refusal is in doubt.
    ///
    /// It is an estimate if many are `retrying`, as ``ExpiredGrants/Sample`` explains.
    package var inDoubt: [String: Int] = [:]
    /// The number of `retrying` grants for each reason, estimated like ``inDoubt``.
    package var retryingReasons: [GrantReason: Int] = [:]
    /// How long consents of each client id last, as far as it is known.
    package var consentEnds: [String: ConsentEnds] = [:]

    /// The number of all grants.
    package var grants: Int { byState.values.reduce(0, +) }
    /// The number of connected grants.
    package var connected: Int { GrantState.allCases.filter(\.isConnected).reduce(0) { $0 + byState[$1, default: 0] } }
}

extension Store {
    /// Returns the statistics with the usual limits of the warnings.
    package func grantStatistics(at now: Timestamp) async throws -> GrantStatistics {
        try await grantStatistics(
            at: now,
            refreshTokensEndingBefore: now + GrantStatistics.warningBeforeEnd,
            idleSince: now - GrantStatistics.idleBeforeWarning
        )
    }
}

/// The connected grants without a valid access token, which services cannot use.
///
/// A grant that never had an access token counts from the time since which it is in its state.
package struct ExpiredGrants: Hashable, Sendable {
    /// The expired grants of one client id.
    package struct Client: Hashable, Sendable {
        package var count: Int
        /// The time since which the longest of them has no valid token.
        package var oldest: Timestamp
    }

    package private(set) var clients: [String: Client] = [:]

    package var count: Int { clients.values.reduce(0) { $0 + $1.count } }
    package var oldest: Timestamp? { clients.values.map(\.oldest).min() }

    /// Adds expired grants of a client id.
    mutating func add(_ count: Int, oldest: Timestamp, client: String) {
        guard count > 0 else { return }
        var entry = clients[client] ?? Client(count: 0, oldest: oldest)
        entry.count += count
        entry.oldest = min(entry.oldest, oldest)
        clients[client] = entry
    }
}

extension ExpiredGrants {
    /// The rows that a store reads for a count, so that it takes milliseconds with ten million grants too.
    ///
    /// No index orders grants by the end of their access token: each refresh would have to update it, and on PostgreSQL
    /// none would be a heap-only update any more. Counting without one takes 10.8 s with ten million grants. Expired
    /// grants are either `retrying`, or `active` and overdue, and both have an index. In an outage these are all
    /// grants. Above the limit a count is an estimate: the share of the expired grants among those that were read,
    /// times the number of all: 4.10 million for 4.17, in 5 ms. The oldest expired grant can be missed. `suspended`
    /// grants do not count, because their services know.
    struct Sample: Sendable {
        /// The number of grants that a sample reads at most.
        static let limit = 4096
        private static let slices: Int64 = 64

        private let total: Int
        private var examined = 0
        private var parts = ExpiredGrants()
        private var doubted: [String: Int] = [:]
        private var counts: [GrantReason: Int] = [:]

        /// Makes an empty sample of `total` grants.
        init(of total: Int) {
            self.total = total
        }

        /// The ranges of ids to read, and the number of grants to read in each.
        ///
        /// The ids of grants are ordered by the phase of their due time. Grants with neighbouring ids expire together,
        /// so a large set is read in slices.
        var ranges: [(first: Int64, last: Int64, limit: Int)] {
            guard total > Self.limit else { return [(0, .max, Self.limit)] }
            let width = Int64.max / Self.slices + 1
            return (0..<Self.slices).map { index in
                (index * width, index * width + (width - 1), Self.limit / Int(Self.slices))
            }
        }

        /// Records grants of one client id that were read: how many, how many of them have expired, and since when.
        ///
        /// `reason` is the one that they all have, if it was read.
        mutating func record(
            _ count: Int,
            expired: Int,
            oldest: Timestamp?,
            reason: GrantReason? = nil,
            client: String
        ) {
            examined += count
            if let reason { counts[reason, default: 0] += count }
            if let reason, GrantReason.inDoubt.contains(reason) { doubted[client, default: 0] += count }
            if let oldest { parts.add(expired, oldest: oldest, client: client) }
        }

        /// The number of all grants for each that was read.
        ///
        /// The number of all can be older than the sample.
        private var factor: Double { total > Self.limit && examined > 0 ? max(1, Double(total) / Double(examined)) : 1 }

        /// The grants of each client id that are in doubt.
        var inDoubt: [String: Int] { doubted.mapValues(scaled) }
        /// The grants of each reason.
        var reasons: [GrantReason: Int] { counts.mapValues(scaled) }

        private func scaled(_ count: Int) -> Int { Int((Double(count) * factor).rounded()) }

        /// Adds the expired grants to a result.
        func add(to expired: inout ExpiredGrants) {
            for (client, part) in parts.clients {
                expired.add(scaled(part.count), oldest: part.oldest, client: client)
            }
        }
    }
}
