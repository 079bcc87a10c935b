import Base
import HTTPServer
import Scheduler
import Status
import Telemetry

extension MonitoringHandler {
    func prometheus() async -> ServerResponse {
        let clients = await engine.clientStatuses
        let fresh: StatusSnapshot?
        do {
            fresh = try await status.freshSnapshot()
        } catch {
            // The response shows it: `refresh_worker_store_up` is 0.
            fresh = nil
        }
        let process = await status.process()
        let latest = await status.latestSnapshot()
        let report = PrometheusReport(
            at: time.now,
            version: version,
            startedAt: counters.startedAt,
            counts: counters.lifetime,
            droppedLines: metrics.droppedLines,
            inFlight: await engine.inFlight,
            waiting: await engine.waiting,
            isStoreRead: fresh != nil,
            grants: fresh?.countedGrants,
            clients: clients,
            commits: await engine.commitDurations,
            notices: fresh?.notices,
            findings: status.findings(of: process, and: latest),
            certificateExpiresAt: certificateExpiry()
        )
        return ServerResponse(headers: [("Content-Type", PrometheusText.contentType)], body: report.text.bytes)
    }
}
