import Base

/// What the stored grants of one client id say about the life of a consent.
///
/// Google ends the refresh tokens of a Cloud project in testing seven days after the consent
/// (https://developers.google.com/identity/protocols/oauth2#expiration).
package struct ConsentEnds: Hashable, Sendable {
    static let testingLife: Duration = .seconds(7 * 86_400)
    /// An app states the lifetime in whole seconds, a moment after the consent.
    static let tolerance: Duration = .seconds(60)
    /// The ages at which a grant of a project in testing is found dead.
    ///
    /// The refresh that finds it comes up to an hour after the end, and a doubt can add 50 minutes.
    private static let testingAges: ClosedRange<Duration> = .seconds(596_160)...(.seconds(622_080))
    /// One or two users who left on that day are usual.
    ///
    /// Losses at this age must also be half of all. In the model of `ConsentEndsTests`, users who leave at random would
    /// raise the alarm by either rule alone.
    private static let fewestLosses = 3
    /// The time in which losses count.
    package static let period: Duration = .seconds(30 * 86_400)
    /// The latest losses that a store reads, so that the query takes milliseconds after a mass revocation too.
    static let maximumLosses = 4096

    /// The connected grants whose refresh token was said to live for seven days when it came.
    package var announced = 0
    /// The ages at which Google ended grants in the last 30 days, the latest first.
    package var losses: [Duration] = []

    package init() {}

    /// The grants that speak for a project in testing, or 0 if it is none.
    package var grantsInTesting: Int {
        guard announced == 0 else { return announced }
        let count = losses.count { Self.testingAges.contains($0) }
        return count >= Self.fewestLosses && 2 * count >= losses.count ? count : 0
    }
}

extension GrantStatistics {
    /// The client ids whose Cloud project is in testing, with a sentence about each.
    package var projectsInTesting: [(client: String, count: Int, text: String)] {
        consentEnds.sorted { $0.key < $1.key }.filter { $0.value.grantsInTesting > 0 }.map { client, ends in
            let name = DisplayedText(client)
            let text = "refresh tokens of client \(name) end seven days after the consent: publish the OAuth app"
            return (client, ends.grantsInTesting, text)
        }
    }
}

extension SQLQuery {
    static let countAnnounced = SQLQuery(
        "count tokens of seven days",
        """
        SELECT client_id, count(*) FROM refresh_worker.grants /* INDEXED BY grants_by_ending */
        WHERE refresh_expires_at > $1 AND refresh_expires_at <= $2 AND state IN (\(GrantState.connectedList))
            AND refresh_expires_at - refresh_consented_at BETWEEN $3 AND $4
        GROUP BY client_id
        """
    )
    /// Leaves out grants that are refreshed again with the same consent, and counts each consent once.
    static let losses = SQLQuery(
        "ages of lost grants",
        """
        SELECT client_id, lost_at - consent FROM (
            SELECT grant_id, consented_at AS consent, max(at) AS lost_at FROM (
                SELECT grant_id, consented_at, at FROM refresh_worker.grant_events
                WHERE consented_at IS NOT NULL AND at > $1 ORDER BY at DESC LIMIT $2
            ) AS part GROUP BY grant_id, consented_at
        ) AS part JOIN refresh_worker.grants ON id = grant_id
        WHERE state = '\(GrantState.disconnected.rawValue)' OR refresh_consented_at IS NULL
            OR refresh_consented_at <> consent
        ORDER BY lost_at DESC
        """
    )
}

extension SQLStore {
    /// Returns how long consents of each client id last, as far as it is known.
    func consentEnds(at now: Timestamp) async throws -> [String: ConsentEnds] {
        let least = ConsentEnds.testingLife - ConsentEnds.tolerance
        let most = ConsentEnds.testingLife + ConsentEnds.tolerance
        let found = try await rows(
            [
                SQLStatement(
                    .countAnnounced,
                    .time(now),
                    .time(now + most),
                    .integer(least.wholeMilliseconds),
                    .integer(most.wholeMilliseconds)
                ),
                SQLStatement(.losses, .time(now - ConsentEnds.period), .limit(ConsentEnds.maximumLosses)),
            ],
            by: .scan
        ) { index, row in (isLoss: index == 1, client: row.text(), value: row.integer()) }
        return found.reduce(into: [:]) { ends, row in
            if row.isLoss {
                ends[row.client, default: ConsentEnds()].losses.append(.milliseconds(row.value))
            } else {
                ends[row.client, default: ConsentEnds()].announced = Int(row.value)
            }
        }
    }
}
