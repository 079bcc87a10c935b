package import Base
package import Crypto
package import HTTPClient
package import Storage
import Telemetry

/// Delivers notices to the backend: takes the lease on notices, posts those that are due, and stores the outcomes.
///
/// The outbox in the store is the queue, so that no notice is lost when the worker dies. If the acceptance of a notice
/// could not be stored, the notice is posted again under the same id. Only the oldest pending notice of a user is ever
/// due, which keeps them in order. A batch takes much less time than the lease, which is renewed for each.
///
///     try await dispatcher.announceExpiring()
///     let posted = try await dispatcher.deliverDue()
package struct NoticeDispatcher: Sendable {
    /// The limit of one request. The lease lasts longer.
    static let deadline: Duration = .seconds(10)
    private static let leaseSpan: Duration = .seconds(30)
    /// The number of notices that are posted at once.
    package static let batchSize = 16
    private static let announcedAtOnce = 200

    let store: any Store
    let http: HTTPClient
    let endpoint: Endpoint
    let keys: [MessageKey]
    /// The time before the end of a refresh token at which the backend is notified, or zero for never.
    let expiryNotice: Duration
    let workerName: String
    let log: EngineLog
    let random: any RandomSource
    private var time: any TimeSource { log.time }

    package init(
        store: any Store,
        http: HTTPClient,
        endpoint: Endpoint,
        keys: [MessageKey],
        expiryNotice: Duration,
        workerName: String,
        log: EngineLog,
        random: any RandomSource
    ) {
        self.store = store
        self.http = http
        self.endpoint = endpoint
        self.keys = keys
        self.expiryNotice = expiryNotice
        self.workerName = workerName
        self.log = log
        self.random = random
    }

    /// Delivers until no notice is due, unless another process is delivering, and returns the number of posted notices.
    @discardableResult
    package func deliverDue() async throws -> Int {
        var posted = 0
        while !Task.isCancelled {
            guard let nextAt = try await store.nextNoticeAt(), nextAt <= time.now else { break }
            guard try await store.claimNotices(owner: workerName, for: Self.leaseSpan) else { break }
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
    package func stop() async throws { try await store.releaseNotices(owner: workerName) }

    /// Adds a notice for each refresh token that expires soon, once. The mark of the token and its notice are stored in
    /// one transaction, so several workers can look at the same time.
    package func announceExpiring() async throws {
        guard expiryNotice > .zero else { return }
        let now = time.now
        let end = now + expiryNotice
        while !Task.isCancelled {
            let ids = try await store.unannounced(endingBy: end, at: now, atMost: Self.announcedAtOnce)
            guard !ids.isEmpty else { return }
            try await store.transact { transaction in
                try transaction.willRead(grants: ids, healthOf: [])
                for id in ids {
                    guard var grant = try transaction.grant(id),
                        let content = grant.announceExpiry(by: end, at: now)
                    else { continue }
                    try transaction.update(grant)
                    try transaction.notify(content, ofUser: grant.userID, at: now)
                }
            }
        }
    }

    private func deliver(_ notice: Notice) async throws {
        if case .expiring(let subject, let end) = notice.content,
            try await store.grant(subject.grant)?.isAnnounced(toExpireAt: end) != true
        {
            // The token was replaced or the grant has ended while the notice waited.
            log.diagnostics.info("a notice is outdated, and not posted", ["notice": notice.id.description])
            return try await store.noticeGivenUp(notice, at: time.now)
        }
        let answer = await post(notice)
        let now = time.now
        let outcome = NoticeOutcome.make(
            of: notice,
            status: answer.status,
            retryAfter: answer.retryAfter,
            at: now,
            jitter: random.nextUnit()
        )
        switch outcome {
        case .accepted: try await store.noticeAccepted(notice, at: now)
        case .postponed(let until): try await store.noticePostponed(notice, until: until)
        case .givenUp:
            try await store.noticeGivenUp(notice, at: now)
            log.diagnostics.error(
                "a notice was not accepted within a day and is given up; refresh-worker notices replay posts it again",
                [
                    "notice": notice.id.description, "type": notice.content.type,
                    "grant": notice.content.subject?.grant.description ?? "",
                ]
            )
        }
        log.counters.recordNotice(outcome: outcome.name)
        log.metrics.record(.delivery(of: notice, outcome: outcome, status: answer.status))
    }

    private func post(_ notice: Notice) async -> (status: Int?, retryAfter: Duration?) {
        let request = notice.request(to: endpoint, keys: keys, at: time.now)
        do throws(HTTPError) {
            let response = try await http.send(request, deadline: Self.deadline)
            return (response.status, response.retryAfter)
        } catch {
            log.diagnostics.info(
                "a notice could not be posted",
                ["notice": notice.id.description, "error": error.kind.rawValue]
            )
            return (nil, nil)
        }
    }
}

extension MetricsEvent {
    /// One try to deliver a notice to the backend.
    static func delivery(of notice: Notice, outcome: NoticeOutcome, status: Int?) -> MetricsEvent {
        MetricsEvent("notice") { line in
            line.text("notice", notice.id.description, "its id, which the receiver gets too")
            line.text("type", notice.content.type, "as in `grant.disconnected` or `user.deleted`")
            line.text(
                "grant",
                ifAny: notice.content.subject?.grant.description,
                "the grant, if the notice is about one"
            )
            line.text("outcome", outcome.name, "`accepted`, `postponed`, or `given_up` after a day of trying")
            line.number("attempt", notice.attempts + 1, "the try, from 1 on")
            line.number("status", ifAny: status, "the receiver's HTTP status, if it answered")
            line.text("trace_id", ifAny: notice.trace?.traceID.text, "the trace of the request that made the change")
        }
    }
}
