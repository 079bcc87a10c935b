package import Clocks

/// The content of one answer to Prometheus.
package struct PrometheusReport: Sendable {
    /// The numbers of grants, from the database.
    package struct Grants: Sendable {
        /// The name of each state with its number of grants.
        package var byState: [(state: String, count: Int)]
        package var due: Int
        package var overdue: Int
        package var oldestOverdue: Duration

        package init(byState: [(state: String, count: Int)], due: Int, overdue: Int, oldestOverdue: Duration) {
            self.byState = byState
            self.due = due
            self.overdue = overdue
            self.oldestOverdue = oldestOverdue
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
        certificateExpiresAt: Timestamp?,
        usage: ProcessUsage
    ) {
        self.counts = counts
        self.startedAt = startedAt
        self.droppedLines = droppedLines
        self.inFlight = inFlight
        self.grants = grants
        self.clients = clients
        self.certificateExpiresAt = certificateExpiresAt
        self.usage = usage
    }

    package var text: PrometheusText {
        var text = PrometheusText()
        writeCounters(into: &text)
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
    }

    private static func samples(_ counts: [String: Int]) -> [(labels: [String], value: Double)] {
        counts.sorted { $0.key < $1.key }.map { (labels: [$0.key], value: Double($0.value)) }
    }
}
