package import Base
package import Crypto
package import HTTPClient
package import Storage
package import Telemetry

/// Delivers notices to the backend: takes the lease on notices, posts those that are due, and stores the outcomes.
///
/// The outbox in the store is the queue, so that no notice is lost when the worker dies. If the acceptance of a notice
/// could not be stored, the notice is posted again under the same id. Only the oldest pending notice of a user is ever
/// due, which keeps them in order. A batch takes much less time than the lease, which is renewed for each.
package struct NoticeDispatcher: Sendable {
    /// The limit of one request; the lease lasts longer.
    private static let deadline: Duration = .seconds(10)
    private static let leaseSpan: Duration = .seconds(30)
    /// The number of notices that are posted at once.
    private static let batchSize = 16

    let store: any AccountStore
    let http: HTTPClient
    let endpoint: Endpoint
    let key: MessageKey
    let workerName: String
    let metrics: MetricsLog
    let counters: LifetimeCounters
    let diagnostics: DiagnosticLog
    let time: any TimeSource
    let random: any RandomSource

    package init(
        store: any AccountStore,
        http: HTTPClient,
        endpoint: Endpoint,
        key: MessageKey,
        workerName: String,
        metrics: MetricsLog,
        counters: LifetimeCounters,
        diagnostics: DiagnosticLog,
        time: any TimeSource,
        random: any RandomSource
    ) {
        self.store = store
        self.http = http
        self.endpoint = endpoint
        self.key = key
        self.workerName = workerName
        self.metrics = metrics
        self.counters = counters
        self.diagnostics = diagnostics
        self.time = time
        self.random = random
    }

    /// Delivers until no notice is due, unless another process is delivering; returns the number of posted notices.
    @discardableResult
    package func deliverDue() async throws -> Int {
        var posted = 0
        while !Task.isCancelled {
            guard try await store.nextNoticeAt().map({ $0 <= time.now }) ?? false,
                try await store.claimNotices(owner: workerName, for: Self.leaseSpan)
            else { break }
            let notices = try await store.dueNotices(at: time.now, atMost: Self.batchSize)
            guard !notices.isEmpty else { break }
            try await withThrowingDiscardingTaskGroup { group in
                for notice in notices { group.addTask { try await deliver(notice) } }
            }
            posted += notices.count
        }
        return posted
    }

    /// Lets another process deliver.
    package func stop() async throws {
        try await store.releaseNotices(owner: workerName)
    }

    private func deliver(_ notice: Notice) async throws {
        let answer = await post(notice)
        let now = time.now
        let outcome = NoticeOutcome.make(
            of: notice,
            status: answer.status,
            retryAfter: answer.retryAfter,
            at: now,
            unit: random.nextUnit()
        )
        switch outcome {
        case .accepted: try await store.noticeAccepted(notice.sequence, at: now)
        case .postponed(let until): try await store.noticePostponed(notice.sequence, until: until)
        case .givenUp:
            try await store.noticeGivenUp(notice.sequence, at: now)
            diagnostics.error(
                "a notice was not accepted within a day and is given up; refresh-worker notices replay posts it again",
                ["notice": notice.id, "type": notice.content.type, "grant": notice.content.grant?.description ?? ""]
            )
        }
        counters.recordNotice(outcome: outcome.name)
        metrics.record(
            NoticeEvent(
                notice: notice.id,
                type: notice.content.type,
                grant: notice.content.grant?.description,
                outcome: outcome.name,
                attempt: notice.attempts + 1,
                status: answer.status
            )
        )
    }

    private func post(_ notice: Notice) async -> (status: Int?, retryAfter: Duration?) {
        let request = NoticeMessage.request(for: notice, to: endpoint, key: key, at: time.now)
        do throws(HTTPFailure) {
            let response = try await http.send(request, deadline: Self.deadline)
            return (response.status, response.retryAfter)
        } catch {
            diagnostics.info("a notice could not be posted", ["notice": notice.id, "error": error.kind.rawValue])
            return (nil, nil)
        }
    }
}
