package import Base

/// The content of one answer to Prometheus.
package struct PrometheusReport: Sendable {
    /// The numbers of grants, from the database.
    package struct Grants: Sendable {
        /// The name of each state with its number of grants.
        package var byState: [(state: String, count: Int)]
        package var due: Int
        package var overdue: Int
        package var oldestOverdue: Duration
        /// The connected grants without a valid access token, of each client id that has a health or such grants.
        package var expired: [Expired]

        package init(
            byState: [(state: String, count: Int)],
            due: Int,
            overdue: Int,
            oldestOverdue: Duration,
            expired: [Expired] = []
        ) {
            self.byState = byState
            self.due = due
            self.overdue = overdue
            self.oldestOverdue = oldestOverdue
            self.expired = expired
        }
    }

    /// The expired grants of one client id.
    package struct Expired: Sendable {
        package var client: String
        package var count: Int
        package var oldest: Duration

        package init(client: String, count: Int, oldest: Duration) {
            self.client = client
            self.count = count
            self.oldest = oldest
        }

        /// The greatest number of client ids with samples of their own: each sample costs Prometheus memory for ever.
        package static let maximumClients = 50

        /// Combines all but the first clients into one, with the label `other`.
        static func bounded(_ entries: [Expired]) -> [Expired] {
            guard entries.count > maximumClients else { return entries }
            let largest = entries.sorted { ($1.count, $0.client) < ($0.count, $1.client) }
            let rest = largest.dropFirst(maximumClients)
            let other = Expired(
                client: "other",
                count: rest.reduce(0) { $0 + $1.count },
                oldest: rest.map(\.oldest).max() ?? .zero
            )
            return largest.prefix(maximumClients).sorted { $0.client < $1.client } + [other]
        }
    }

    /// The verdict, and the number of concerns of each kind that is not an alarm.
    package struct Verdict: Sendable {
        package var isWell: Bool
        package var concerns: [(kind: String, count: Int)]

        package init(isWell: Bool, concerns: [(kind: String, count: Int)]) {
            self.isWell = isWell
            self.concerns = concerns
        }
    }

    /// The status of one client id.
    package struct Client: Sendable {
        package enum Breaker: String, CaseIterable, Sendable {
            case closed, open, probing
        }

        package var id: String
        package var breaker: Breaker
        /// Refreshes a second.
        package var ceiling: Double

        package init(id: String, breaker: Breaker, ceiling: Double) {
            self.id = id
            self.breaker = breaker
            self.ceiling = ceiling
        }
    }

    package var counts: LifetimeCounters.Counts
    package var startedAt: Timestamp
    package var droppedLines: Int
    package var inFlight: Int
    /// `nil` if the database cannot be read.
    package var grants: Grants?
    package var clients: [Client]
    package var alarms: [CurrentAlarm]
    /// `nil` until it was judged once.
    package var verdict: Verdict?
    /// `nil` if the internal listener does not use TLS.
    package var certificateExpiresAt: Timestamp?
    package var usage: ProcessUsage

    package init(
        counts: LifetimeCounters.Counts,
        startedAt: Timestamp,
        droppedLines: Int,
        inFlight: Int,
        grants: Grants?,
        clients: [Client],
        alarms: [CurrentAlarm] = [],
        verdict: Verdict? = nil,
        certificateExpiresAt: Timestamp?,
        usage: ProcessUsage
    ) {
        self.counts = counts
        self.startedAt = startedAt
        self.droppedLines = droppedLines
        self.inFlight = inFlight
        self.grants = grants
        self.clients = clients
        self.alarms = alarms
        self.verdict = verdict
        self.certificateExpiresAt = certificateExpiresAt
        self.usage = usage
    }

    package var text: PrometheusText {
        var text = PrometheusText()
        writeCounters(into: &text)
        writeVerdict(into: &text)
        if let grants { Self.write(grants, into: &text) }
        text.family(PrometheusSchema.inFlight, Double(inFlight))
        writeClients(into: &text)
        text.family(PrometheusSchema.storeUp, grants == nil ? 0 : 1)
        if let end = certificateExpiresAt {
            text.family(PrometheusSchema.certificateEnd, Double(end.milliseconds) / 1000)
        }
        text.family(PrometheusSchema.startTime, Double(startedAt.milliseconds) / 1000)
        if let bytes = usage.residentBytes { text.family(PrometheusSchema.residentMemory, Double(bytes)) }
        if let count = usage.openDescriptors { text.family(PrometheusSchema.openDescriptors, Double(count)) }
        return text
    }

    private func writeCounters(into text: inout PrometheusText) {
        // Every outcome is present from the start, so that a rate can be computed from its first occurrence.
        let refreshes = RefreshOutcome.allCases.map { outcome in
            (labels: [outcome.rawValue], value: Double(counts.refreshes[outcome, default: 0]))
        }
        text.family(PrometheusSchema.refreshes, refreshes)
        text.family(PrometheusSchema.refreshDuration, counts.refreshDuration)
        text.family(PrometheusSchema.vends, Self.samples(counts.vends))
        text.family(PrometheusSchema.vendDuration, counts.vendDuration)
        let requests = counts.requests.sorted { $0.key < $1.key }
        text.family(
            PrometheusSchema.requests,
            requests.map { (labels: [$0.key.route, $0.key.statusClass], value: Double($0.value)) }
        )
        text.family(PrometheusSchema.notices, Self.samples(counts.notices))
        text.family(PrometheusSchema.securityEvents, Self.samples(counts.securityEvents))
        text.family(PrometheusSchema.droppedLines, Double(droppedLines))
        // Every kind is present from the start, so that an alerting rule finds a series.
        text.family(
            PrometheusSchema.alarmsRaised,
            AlarmKind.allCases.map { (labels: [$0.rawValue], value: Double(counts.alarms[$0, default: 0])) }
        )
    }

    private func writeVerdict(into text: inout PrometheusText) {
        let current = AlarmKind.allCases.map { kind in
            (labels: [kind.rawValue], value: Double(alarms.count { $0.kind == kind }))
        }
        text.family(PrometheusSchema.alarms, current)
        guard let verdict else { return }
        text.family(
            PrometheusSchema.concerns,
            verdict.concerns.map { (labels: [$0.kind], value: Double($0.count)) }
        )
        text.family(PrometheusSchema.verdict, verdict.isWell ? 1 : 0)
    }

    private func writeClients(into text: inout PrometheusText) {
        let breakers = clients.flatMap { client in
            Client.Breaker.allCases.map { state in
                (labels: [client.id, state.rawValue], value: state == client.breaker ? 1.0 : 0.0)
            }
        }
        text.family(PrometheusSchema.breaker, breakers)
        text.family(PrometheusSchema.ceiling, clients.map { (labels: [$0.id], value: $0.ceiling) })
    }

    private static func write(_ grants: Grants, into text: inout PrometheusText) {
        text.family(PrometheusSchema.grants, grants.byState.map { (labels: [$0.state], value: Double($0.count)) })
        text.family(PrometheusSchema.due, Double(grants.due))
        text.family(PrometheusSchema.overdue, Double(grants.overdue))
        text.family(PrometheusSchema.oldestOverdue, grants.oldestOverdue.inSeconds)
        let expired = Expired.bounded(grants.expired)
        text.family(PrometheusSchema.expired, expired.map { (labels: [$0.client], value: Double($0.count)) })
        text.family(PrometheusSchema.oldestExpired, expired.map { (labels: [$0.client], value: $0.oldest.inSeconds) })
    }

    private static func samples(_ counts: [String: Int]) -> [(labels: [String], value: Double)] {
        counts.sorted { $0.key < $1.key }.map { (labels: [$0.key], value: Double($0.value)) }
    }
}
