import Foundation
import HTTPClient
import Scheduler
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Storage
@testable import Telemetry

@Suite("The delivery of notices", .timeLimit(.minutes(10)))
struct NoticeDispatcherTests {
    @Test("posts each change once, those of one grant in their order")
    func inOrder() async throws {
        let fixture = try NoticeFixture { _ in 204 }
        try await fixture.disconnect(user: 1)
        try await fixture.reconnect(user: 1)
        try await fixture.disconnect(user: 2)
        #expect(try await fixture.dispatcher.deliverDue() == 3)
        #expect(try await fixture.dispatcher.deliverDue() == 0)
        let types = try fixture.posted.filter { $0["data"]?["user_id"] == .string("user 1") }.map { $0["type"]?.string }
        #expect(types == ["grant.disconnected", "grant.connected"])
    }

    @Test("does not post the later notice of a grant before the earlier one is accepted")
    func waitsForTheEarlier() async throws {
        let fixture = try NoticeFixture { number in number == 1 ? 503 : 204 }
        try await fixture.disconnect(user: 1)
        try await fixture.reconnect(user: 1)
        #expect(try await fixture.dispatcher.deliverDue() == 1)
        fixture.time.advance(by: .seconds(5))
        #expect(try await fixture.dispatcher.deliverDue() == 2)
        let types = try fixture.posted.map { $0["type"]?.string }
        #expect(types == ["grant.disconnected", "grant.disconnected", "grant.connected"])
        let ids = Set(try fixture.posted.prefix(2).map { $0["id"]?.string })
        #expect(ids.count == 1)
    }

    @Test("gives a notice up after a day, and continues with the next")
    func givesUp() async throws {
        let accepts = Mutex(false)
        let fixture = try NoticeFixture { _ in accepts.withLock { $0 } ? 204 : 500 }
        try await fixture.disconnect(user: 1)
        for _ in 0..<30 {
            try await fixture.dispatcher.deliverDue()
            fixture.time.advance(by: .seconds(3600))
        }
        #expect(try await fixture.store.nextNoticeAt() == nil)
        accepts.withLock { $0 = true }
        try await fixture.reconnect(user: 1)
        #expect(try await fixture.dispatcher.deliverDue() == 1)
        #expect(try fixture.posted.last?["type"] == .string("grant.connected"))
    }

    @Test("posts nothing while another process has claimed the outbox")
    func oneAtATime() async throws {
        let fixture = try NoticeFixture { _ in 204 }
        try await fixture.disconnect(user: 1)
        #expect(try await fixture.store.claimNotices(owner: "another", for: .seconds(30)))
        #expect(try await fixture.dispatcher.deliverDue() == 0)
        fixture.time.advance(by: .seconds(31))
        #expect(try await fixture.dispatcher.deliverDue() == 1)
    }

    @Test("posts replayed notices again under the same id")
    func replay() async throws {
        let fixture = try NoticeFixture { _ in 204 }
        try await fixture.disconnect(user: 1)
        try await fixture.dispatcher.deliverDue()
        let count = try await fixture.store.replayNotices(
            since: fixture.time.now - .seconds(60),
            ofUser: nil,
            at: fixture.time.now
        )
        #expect(count == 1)
        #expect(try await fixture.dispatcher.deliverDue() == 1)
        let ids = Set(try fixture.posted.map { $0["id"]?.string })
        #expect(ids.count == 1)
    }

    @Test("posts the trace of the request that made the change each time, and that of no other request")
    func trace() async throws {
        let fixture = try NoticeFixture { number in number == 1 ? 503 : 204 }
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        let trace = try #require(TraceContext(traceparent: header))
        try await TraceContext.$current.withValue(trace) { try await fixture.disconnect(user: 1) }
        try await fixture.dispatcher.deliverDue()
        fixture.time.advance(by: .seconds(5))
        try await fixture.dispatcher.deliverDue()
        let replayed = try await fixture.store.replayNotices(
            since: fixture.time.now - .seconds(60),
            ofUser: nil,
            at: fixture.time.now
        )
        try await fixture.dispatcher.deliverDue()
        #expect(replayed == 1)
        #expect(fixture.traces == [header, header, header])

        try await fixture.disconnect(user: 2)
        try await TraceContext.$current.withValue(trace) { _ = try await fixture.dispatcher.deliverDue() }
        #expect(fixture.traces == [header, header, header, nil])
        let logged = try fixture.sink.lines.map { try JSONValue.parse(Array($0.utf8))["trace_id"]?.string }
        #expect(logged == [trace.traceID.text, trace.traceID.text, trace.traceID.text, nil])
    }

    @Test("announces the end of a refresh token once, three days before, whichever worker looks")
    func expiring() async throws {
        let fixture = try NoticeFixture { _ in 204 }
        let end = fixture.time.now + .seconds(7 * 86_400)
        try await fixture.connect(user: 1, tokenExpiresAt: end)
        try await fixture.connect(user: 2, tokenExpiresAt: nil)
        try await fixture.dispatcher.announceExpiring()
        #expect(try await fixture.dispatcher.deliverDue() == 0)
        fixture.time.advance(by: .seconds(4 * 86_400))
        async let other: Void = fixture.dispatcher.announceExpiring()
        try await fixture.dispatcher.announceExpiring()
        try await other
        #expect(try await fixture.dispatcher.deliverDue() == 1)
        let posted = try #require(try fixture.posted.last)
        #expect(posted["type"] == .string("grant.expiring"))
        #expect(posted["data"]?["user_id"] == .string("user 1"))
        #expect(posted["data"]?["expires_at"] == .string(end.iso8601))
        fixture.time.advance(by: .seconds(86_400))
        try await fixture.dispatcher.announceExpiring()
        #expect(try await fixture.dispatcher.deliverDue() == 0)

        // The next token of the same user is announced too.
        try await fixture.connect(user: 1, tokenExpiresAt: fixture.time.now + .seconds(60))
        try await fixture.dispatcher.announceExpiring()
        #expect(try await fixture.dispatcher.deliverDue() == 1)
    }

    @Test(
        "does not announce a token that was replaced or has ended, or that of an ended grant",
        arguments: [true, false]
    )
    func notExpiring(isReplaced: Bool) async throws {
        let fixture = try NoticeFixture { number in number == 1 ? 503 : 204 }
        try await fixture.connect(user: 1, tokenExpiresAt: fixture.time.now + .seconds(86_400))
        try await fixture.connect(user: 2, tokenExpiresAt: fixture.time.now)
        try await fixture.dispatcher.announceExpiring()
        #expect(try await fixture.dispatcher.deliverDue() == 1, "the backend refuses it")
        // The notice waits for its second try.
        if isReplaced {
            try await fixture.connect(user: 1, tokenExpiresAt: nil)
        } else {
            try await fixture.disconnect(user: 1)
        }
        fixture.time.advance(by: .seconds(60))
        try await fixture.dispatcher.announceExpiring()
        try await fixture.dispatcher.deliverDue()
        let types = try fixture.posted.map { $0["type"]?.string }
        #expect(types == ["grant.expiring"] + (isReplaced ? [] : ["grant.disconnected"]))
        #expect(try await fixture.store.nextNoticeAt() == nil)
    }

    @Test("still announces the end of a suspended grant's token, which can be probed until then")
    func expiringSuspended() async throws {
        let fixture = try NoticeFixture { _ in 204 }
        try await fixture.connect(user: 1, tokenExpiresAt: fixture.time.now + .seconds(86_400))
        try await fixture.dispatcher.announceExpiring()
        try await fixture.change(1) { $0.suspend(reason: .accountDisabled, probeAt: $1, at: $1) }
        try await fixture.dispatcher.deliverDue()
        #expect(try fixture.posted.map { $0["type"]?.string }.contains("grant.expiring"))
    }

    @Test("announces the end of a recalled grant's token again, because the first notice was dropped")
    func expiringRecalled() async throws {
        let fixture = try NoticeFixture { _ in 204 }
        try await fixture.connect(user: 1, tokenExpiresAt: fixture.time.now + .seconds(86_400))
        try await fixture.dispatcher.announceExpiring()
        try await fixture.disconnect(user: 1)
        try await fixture.dispatcher.deliverDue()
        #expect(try fixture.posted.map { $0["type"]?.string } == ["grant.disconnected"])
        try await fixture.change(1) { $0.recall(confirmAt: $1 + .seconds(300), at: $1) }
        try await fixture.dispatcher.announceExpiring()
        try await fixture.dispatcher.deliverDue()
        #expect(try fixture.posted.map { $0["type"]?.string }.contains("grant.expiring"))
    }

    @Test("writes the outcome of each try to the metrics log")
    func metrics() async throws {
        let fixture = try NoticeFixture { number in number == 1 ? 503 : 204 }
        try await fixture.disconnect(user: 1)
        try await fixture.dispatcher.deliverDue()
        fixture.time.advance(by: .seconds(5))
        try await fixture.dispatcher.deliverDue()
        let lines = try fixture.sink.lines.map { try JSONValue.parse(Array($0.utf8)) }
        #expect(lines.map { $0["outcome"]?.string } == ["postponed", "accepted"])
        #expect(lines.map { $0["attempt"]?.integer } == [1, 2])
        #expect(lines.map { $0["status"]?.integer } == [503, 204])
    }
}

/// A store with an outbox, a backend that answers by the number of the request, and a dispatcher between them.
private final class NoticeFixture: Sendable {
    let time = ManualTime()
    let store: TestStore
    let sink = LineMemory()
    let dispatcher: NoticeDispatcher
    private let server: ScriptedServer
    private let http: HTTPClient

    init(status: @escaping @Sendable (Int) -> Int) throws {
        store = try TestStore(time: time, random: SeededRandom(seed: 1), keepsNotices: true)
        server = try ScriptedServer { request in
            [.send("HTTP/1.1 \(status(request.number)) Answer\r\nContent-Length: 0\r\n\r\n")]
        }
        http = try HTTPClient()
        dispatcher = NoticeDispatcher(
            store: store,
            http: http,
            endpoint: try Endpoint(server.url),
            keys: [MessageKey(Secret("0123456789abcdef0123456789abcdef"))],
            expiryNotice: .seconds(3 * 86_400),
            workerName: "worker",
            log: EngineLog(
                metrics: MetricsLog(sink: sink, worker: "worker", time: time),
                diagnostics: DiagnosticLog(level: .error, time: time),
                counters: EventCounters(time: time),
                time: time
            ),
            random: SeededRandom(seed: 2)
        )
    }

    deinit {
        http.shutDown()
        server.stop()
    }

    var posted: [JSONValue] {
        get throws { try server.received.map { try JSONValue.parse($0.body) } }
    }

    /// The header `traceparent` of each delivery.
    var traces: [String?] {
        let name = "traceparent: "
        return server.received.map { request in
            let line = request.head.split(separator: "\r\n").first { $0.hasPrefix(name) }
            return line.map { String($0.dropFirst(name.count)) }
        }
    }

    func disconnect(user: Int64) async throws {
        try await change(user) { $0.disconnect(reason: .invalidGrant, at: $1) }
    }

    /// Brings a new refresh token.
    func connect(user: Int64, tokenExpiresAt end: Timestamp?) async throws {
        let ring = try KeyRing(keys: [RingKey.random()])
        let token = try TokenVault(ring: ReloadableKeyRing { ring }).seal(
            refreshToken: Secret("refresh"),
            for: GrantID(rawValue: user),
            expiresAt: end
        )
        try await change(user) { grant, now in
            grant.reconnect(
                IncomingTokens(clientID: "client", refreshToken: token),
                replacesRefreshToken: true,
                discardsStored: false,
                dueAt: nil,
                at: now
            )
        }
    }

    func reconnect(user: Int64) async throws {
        try await change(user) { grant, now in
            grant.reconnect(
                IncomingTokens(clientID: "client"),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: nil,
                at: now
            )
        }
    }

    func change(_ user: Int64, _ body: @escaping @Sendable (inout Grant, Timestamp) -> [GrantEvent])
        async throws
    {
        let now = time.now
        try await store.transact { transaction in
            if try transaction.grant(GrantID(rawValue: user)) == nil {
                let (grant, events) = Grant.connected(
                    id: GrantID(rawValue: user),
                    userID: "user \(user)",
                    incoming: IncomingTokens(clientID: "client"),
                    dueAt: nil,
                    at: now
                )
                try transaction.insert(grant)
                for event in events { try transaction.record(event) }
            }
            guard var grant = try transaction.grant(GrantID(rawValue: user)) else { return }
            let events = body(&grant, now)
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
        }
    }
}

/// Lines in memory.
private final class LineMemory: LineSink {
    private let state = Mutex<[String]>([])
    let droppedLines = 0

    var lines: [String] { state.withLock { $0 } }

    func write(_ line: JSONLine) -> Bool {
        state.withLock { $0.append(line.text) }
        return true
    }
}
