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
        if case .expiring(let id, let end) = notice.content,
            try await store.grant(id)?.isAnnounced(toExpireAt: end) != true
        {
            // The token was replaced or the grant has ended while the notice waited.
            log.diagnostics.info("a notice is outdated, and not posted", ["notice": notice.id])
            return try await store.noticeGivenUp(notice.sequence, at: time.now)
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
        case .accepted: try await store.noticeAccepted(notice.sequence, at: now)
        case .postponed(let until): try await store.noticePostponed(notice.sequence, until: until)
        case .givenUp:
            try await store.noticeGivenUp(notice.sequence, at: now)
            log.diagnostics.error(
                "a notice was not accepted within a day and is given up; refresh-worker notices replay posts it again",
                ["notice": notice.id, "type": notice.content.type, "grant": notice.content.grant?.description ?? ""]
            )
        }
        log.counters.lifetime.recordNotice(outcome: outcome.name)
        log.metrics.record(.delivery(of: notice, outcome: outcome, status: answer.status))
    }

    private func post(_ notice: Notice) async -> (status: Int?, retryAfter: Duration?) {
        let request = notice.request(to: endpoint, keys: keys, at: time.now)
        do throws(HTTPError) {
            let response = try await http.send(request, deadline: Self.deadline)
            return (response.status, response.retryAfter)
        } catch {
            log.diagnostics.info("a notice could not be posted", ["notice": notice.id, "error": error.kind.rawValue])
            return (nil, nil)
        }
    }
}

extension MetricsEvent {
    /// One try to deliver a notice to the backend.
    static func delivery(of notice: Notice, outcome: NoticeOutcome, status: Int?) -> MetricsEvent {
        MetricsEvent("notice") { line in
            line.text("notice", notice.id, "its id, which the receiver gets too")
            line.text("type", notice.content.type, "as in `grant.disconnected` or `user.deleted`")
            line.text("grant", ifAny: notice.content.grant?.description, "the grant, if the notice is about one")
            line.text("outcome", outcome.name, "`accepted`, `postponed`, or `given_up` after a day of trying")
            line.number("attempt", notice.attempts + 1, "the try, from 1 on")
            line.number("status", ifAny: status, "the receiver's HTTP status, if it answered")
        }
    }
}

/// The decision about a notice after a delivery: a pure function of the answer and the clock.
enum NoticeOutcome: Hashable, Sendable {
    case accepted
    case postponed(until: Timestamp)
    case givenUp

    /// The name in the metrics log.
    var name: String {
        switch self {
        case .accepted: "accepted"
        case .postponed: "postponed"
        case .givenUp: "given_up"
        }
    }

    /// The time after which a notice that was not accepted is given up.
    static let givenUpAfter: Duration = .seconds(24 * 60 * 60)

    private static let backOff = BackOff(first: .seconds(5), maximum: .seconds(15 * 60))

    /// Returns the outcome for the answer's status. `nil` means that an answer did not arrive.
    static func make(
        of notice: Notice,
        status: Int?,
        retryAfter: Duration?,
        at now: Timestamp,
        jitter: Double
    ) -> NoticeOutcome {
        if let status, (200...299).contains(status) { return .accepted }
        guard now - notice.pendingSince < givenUpAfter else { return .givenUp }
        let wait = backOff.delay(failures: notice.attempts + 1, remainingLife: nil, jitter: jitter)
        return .postponed(until: now + max(wait, retryAfter ?? .zero))
    }
}

/// A notice as it is posted: a signed message about a user.
///
/// The headers and the signed content follow Standard Webhooks
/// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), for which receivers
/// find libraries: HMAC-SHA256 over the id, the time of sending and the body. The id stays the same for every delivery
/// of a notice, so that a receiver recognises repetitions.
extension Notice {
    /// The body: ids, states and times, without secrets.
    var body: [UInt8] {
        var line = JSONLine()
        line.field("id", id)
        line.field("type", content.type)
        line.field("timestamp", at.iso8601)
        line.object("data") { data in
            data.field("user_id", userID)
            Self.write(content, to: &data)
        }
        return line.bytes
    }

    private static func write(_ content: Notice.Content, to data: inout JSONLine) {
        if let grant = content.grant { data.field("grant_id", grant.description) }
        switch content {
        case .connection(_, let from, let to, let reason):
            data.field("connected", to.isConnected)
            data.field("state", to.rawValue)
            if reason == .none { data.null("reason") } else { data.field("reason", reason.rawValue) }
            data.field("former_state", from.rawValue)
        case .lostScopes(_, let lost, let granted):
            data.array("lost_scopes") { array in
                for scope in lost.split(separator: " ") { array.element(String(scope)) }
            }
            data.array("granted_scopes") { array in
                for scope in granted.split(separator: " ") { array.element(String(scope)) }
            }
        case .expiring(_, let end): data.field("expires_at", end.iso8601)
        case .sessionReused(let session): data.field("session_id", session.description)
        case .userDeleted: break
        }
    }

    /// Returns the request that delivers the notice at this instant.
    func request(to endpoint: Endpoint, keys: [MessageKey], at now: Timestamp) -> HTTPRequest {
        .notice(id, body: body, to: endpoint, keys: keys, at: now)
    }
}

extension HTTPRequest {
    /// Returns a signed message, with one signature for each key.
    fileprivate static func notice(
        _ id: String,
        body: [UInt8],
        to endpoint: Endpoint,
        keys: [MessageKey],
        at now: Timestamp
    ) -> HTTPRequest {
        let seconds = "\(now.milliseconds / 1000)"
        let signed = Array("\(id).\(seconds).".utf8) + body
        let signatures = keys.map { "v1,\(Base64.encode($0.authenticate(signed)))" }
        return HTTPRequest(
            method: .post,
            endpoint: endpoint,
            headers: [
                ("Content-Type", "application/json"), ("webhook-id", id), ("webhook-timestamp", seconds),
                ("webhook-signature", signatures.joined(separator: " ")),
            ],
            body: HTTPBody(body)
        )
    }
}

extension HTTPClient {
    /// Posts a notice of the type `test`, which is about no user, and returns the receiver's status. It is not in the
    /// outbox, so it is neither repeated nor replayed.
    package func postTestNotice(
        _ id: String,
        to endpoint: Endpoint,
        keys: [MessageKey],
        at now: Timestamp
    ) async throws(HTTPError) -> Int {
        var line = JSONLine()
        line.field("id", id)
        line.field("type", "test")
        line.field("timestamp", now.iso8601)
        line.object("data") { _ in }
        let request = HTTPRequest.notice(id, body: line.bytes, to: endpoint, keys: keys, at: now)
        return try await send(request, deadline: NoticeDispatcher.deadline).status
    }
}
