import Base
import Crypto
import Glibc
import Scheduler
import Storage

/// Claims due grants and commits a refresh of each, like the engine but without requests: the cost of the store alone.
struct Exercise {
    private static let batchSize = 100
    private static let leaseSpan: Duration = .seconds(60)

    /// The time of the claims, or of the commits, of all batches.
    struct Cost {
        private var walls: [Double] = []
        private var processor = 0.0
        private var grants = 0

        mutating func measure<Answer>(_ count: Int, _ body: () async throws -> Answer) async rethrows -> Answer {
            // A batch may take less than the milliseconds that TimeSource counts in.
            let clock = ContinuousClock()  // time: allowed
            let (wallBefore, processorBefore) = (clock.now, Self.processorSeconds)
            let answer = try await body()
            walls.append((clock.now - wallBefore).inSeconds)
            processor += Self.processorSeconds - processorBefore
            grants += count
            return answer
        }

        /// Microseconds: wall and processor time for one grant, and wall time for a batch.
        var json: String {
            let sorted = walls.sorted()
            let each = { (seconds: Double) in (seconds / Double(max(1, grants)) * 1e6).rounded() }
            let batch = { (fraction: Double) in
                sorted.isEmpty
                    ? 0 : (sorted[min(sorted.count - 1, Int(Double(sorted.count) * fraction))] * 1e6).rounded()
            }
            return """
                {"wall_us": \(each(walls.reduce(0, +))), "cpu_us": \(each(processor)), \
                "batch_p50_us": \(batch(0.5)), "batch_p99_us": \(batch(0.99))}
                """
        }

        private static var processorSeconds: Double {
            var point = timespec()
            // TimeSource does not have the processor time.
            let result = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &point)  // time: allowed
            precondition(result == 0, "the process has no processor clock")
            return Double(point.tv_sec) + Double(point.tv_nsec) / 1e9
        }
    }

    let store: any Store
    let vault: TokenVault
    /// The number of grants to claim and commit.
    let count: Int
    /// The offset from now, so that a day of refreshes does not have to last a day.
    let ahead: Duration

    /// Returns the times as JSON.
    func run() async throws -> String {
        var (claims, commits) = (Cost(), Cost())
        var cursor: DueEntry?
        var done = 0
        // One for all: only the store's work differs from grant to grant.
        let token = Secret(SampleGrant.firstAccessToken(0))
        guard let client = try await store.clientsWithDueTimes().first else {
            throw SeedError(message: "There is no grant to exercise.")
        }
        while done < count {
            let horizon = SystemTime().now + ahead + SampleGrant.lifetime * 2
            let page = try await store.due(ofClient: client, by: horizon, after: cursor, atMost: Self.batchSize)
            guard let last = page.last else { break }
            cursor = last
            let grants = try await claims.measure(page.count) {
                try await store.claim(page.map(\.id), dueBy: nil, owner: "benchmark", for: Self.leaseSpan)
            }
            let now = SystemTime().now + ahead
            let answers = try grants.map { ($0, try tokens(token, for: $0.id, at: now)) }
            try await commits.measure(grants.count) {
                try await store.transact { transaction in
                    try transaction.willRead(grants: answers.map(\.0.id), healthOf: [])
                    for (grant, tokens) in answers { try Self.commit(tokens, of: grant, at: now, in: transaction) }
                }
            }
            done += grants.count
        }
        return "{\"grants\": \(done), \"claim\": \(claims.json), \"commit\": \(commits.json)}"
    }

    private func tokens(_ token: Secret, for id: GrantID, at now: Timestamp) throws -> RefreshedTokens {
        RefreshedTokens(
            accessToken: Grant.AccessToken(
                sealed: try vault.seal(accessToken: token, for: id),
                obtainedAt: now,
                expiresAt: now + SampleGrant.lifetime
            )
        )
    }

    private static func commit(
        _ tokens: RefreshedTokens,
        of claimed: Grant,
        at now: Timestamp,
        in transaction: any StoreTransaction
    ) throws {
        var grant = claimed
        let events = grant.refreshed(tokens, at: now) { DuePolicy.due($0, at: now) }
        grant.setLease(nil)
        guard try transaction.replace(claimed, by: grant) else {
            throw SeedError(message: "Grant \(claimed.id) has changed since its claim.")
        }
        for event in events { try transaction.record(event) }
    }
}
