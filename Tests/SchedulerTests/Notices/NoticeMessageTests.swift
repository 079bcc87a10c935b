import Base
import Crypto
import Foundation
import TestSupport
import Testing

@testable import HTTPClient
@testable import Scheduler
@testable import Storage

@Suite("A notice's message")
struct NoticeMessageTests {
    @Test("contains the change, and no tokens or e-mail addresses")
    func body() throws {
        let body = try JSONValue.parse(NoticeSample.notice().body)
        #expect(
            body
                == .object([
                    "id": .string("ntc_00000000000000000000002a"), "type": .string("grant.disconnected"),
                    "timestamp": .string("2027-01-15T08:00:00.000Z"),
                    "data": .object([
                        "user_id": .string("u-1"), "grant_id": .string("0000000000000003"),
                        "connection": .string("default"), "connected": .bool(false),
                        "state": .string("disconnected"), "reason": .string("invalid_grant"),
                        "former_state": .string("active"),
                    ]),
                ])
        )
    }

    @Test("names the scopes that were lost and those that are left")
    func lostScopes() throws {
        let body = try JSONValue.parse(
            NoticeSample.notice(
                .lostScopes(of: NoticeSample.subject, lost: "gmail calendar", granted: "openid")
            ).body
        )
        #expect(body["type"] == .string("grant.scopes_lost"))
        let data: [String: JSONValue] = [
            "user_id": .string("u-1"), "grant_id": .string("0000000000000003"), "connection": .string("default"),
            "lost_scopes": .array([.string("gmail"), .string("calendar")]),
            "granted_scopes": .array([.string("openid")]),
        ]
        #expect(body["data"]?.object == data)
    }

    @Test("names the session that ended because of a reused token")
    func sessionReused() throws {
        let session = try #require(SessionID(text: "000102030405060708090a0b0c0d0e0f"))
        let body = try JSONValue.parse(NoticeSample.notice(.sessionReused(session)).body)
        #expect(body["type"] == .string("session.reuse_detected"))
        let data: [String: JSONValue] = [
            "user_id": .string("u-1"), "session_id": .string("000102030405060708090a0b0c0d0e0f"),
        ]
        #expect(body["data"]?.object == data)
    }

    @Test("contains only the user for a deletion")
    func userDeleted() throws {
        let body = try JSONValue.parse(NoticeSample.notice(.userDeleted).body)
        #expect(body["type"] == .string("user.deleted"))
        #expect(body["data"]?.object == ["user_id": .string("u-1")])
    }

    @Test("reports a new connection without a reason")
    func connected() throws {
        let body = try JSONValue.parse(
            NoticeSample.notice(
                .connection(of: NoticeSample.subject, from: .disconnected, to: .active, reason: .none)
            ).body
        )
        #expect(body["type"] == .string("grant.connected"))
        #expect(body["data"]?["connected"] == .bool(true))
        #expect(body["data"]?["reason"] == .null)
    }

    // Made by: printf '%s.%s.%s' ID 1800000000 BODY | openssl dgst -sha256 -hmac KEY -binary | base64
    @Test("is signed according to Standard Webhooks")
    func signature() throws {
        let key = MessageKey(Secret("0123456789abcdef0123456789abcdef"))
        let request = NoticeSample.notice().request(
            to: try Endpoint("https://backend.example/notices"),
            keys: [key],
            at: NoticeSample.start
        )
        let headers = Dictionary(request.pattern.headers) { first, _ in first }
        #expect(headers["webhook-id"] == "ntc_00000000000000000000002a")
        #expect(headers["webhook-timestamp"] == "1800000000")
        #expect(headers["webhook-signature"] == "v1,6n5HwIdRpvVVD40NXI7SOUHC99N6U/Qc6LwiOAOBPFk=")
        #expect(request.body?.reveal() == NoticeSample.notice().body)
    }

    @Test("has the trace of the request that made the change as a header, and is signed as without one")
    func trace() throws {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        let send = { (notice: Notice) in
            notice.request(
                to: try Endpoint("https://backend.example/notices"),
                keys: [MessageKey(Secret("0123456789abcdef0123456789abcdef"))],
                at: NoticeSample.start
            )
        }
        let traced = try send(NoticeSample.notice(trace: TraceContext(traceparent: trace)))
        let untraced = try send(NoticeSample.notice())
        let headers = traced.pattern.headers.map { "\($0): \($1)" }
        #expect(headers == untraced.pattern.headers.map { "\($0): \($1)" } + ["traceparent: \(trace)"])
        #expect(traced.body?.reveal() == untraced.body?.reveal())
    }

    @Test("has a signature of each secret while one replaces the other")
    func twoSignatures() throws {
        let secrets = ["fedcba9876543210fedcba9876543210", "0123456789abcdef0123456789abcdef"]
        let request = NoticeSample.notice().request(
            to: try Endpoint("https://backend.example/notices"),
            keys: secrets.map { MessageKey(Secret($0)) },
            at: NoticeSample.start
        )
        let signatures = request.pattern.headers.first { $0.0 == "webhook-signature" }?.1.split(separator: " ")
        #expect(signatures?.count == 2)
        #expect(signatures?.last == "v1,6n5HwIdRpvVVD40NXI7SOUHC99N6U/Qc6LwiOAOBPFk=")
        #expect(signatures?.first != signatures?.last)
    }
}

@Suite("The outcome of a posted notice")
struct NoticeOutcomeTests {
    @Test("is acceptance for any status from 200 to 299", arguments: [200, 202, 204, 299])
    func accepted(status: Int) {
        #expect(outcome(status: status) == .accepted)
    }

    @Test("is a later try otherwise", arguments: [nil, 100, 301, 400, 401, 404, 410, 429, 500, 503])
    func postponed(status: Int?) {
        #expect(outcome(status: status) == .postponed(until: NoticeSample.start + .milliseconds(2500)))
    }

    @Test("is a try no earlier than the receiver asked for")
    func retryAfter() {
        #expect(outcome(status: 503, retryAfter: .seconds(90)) == .postponed(until: NoticeSample.start + .seconds(90)))
    }

    @Test("is the end after a day, unless it is accepted")
    func givenUp() {
        let day: Duration = .seconds(86_400)
        #expect(outcome(status: 503, after: day) == .givenUp)
        #expect(outcome(status: 204, after: day) == .accepted)
        #expect(outcome(status: 503, after: day - .milliseconds(1)) != .givenUp)
    }

    private func outcome(status: Int?, retryAfter: Duration? = nil, after age: Duration = .zero) -> NoticeOutcome {
        NoticeOutcome.make(
            of: NoticeSample.notice(at: NoticeSample.start - age),
            status: status,
            retryAfter: retryAfter,
            at: NoticeSample.start,
            jitter: 0.5
        )
    }
}

enum NoticeSample {
    static let start = Timestamp(secondsSince1970: 1_800_000_000)
    static let subject = Notice.Subject(GrantID(rawValue: 3))

    static func notice(
        _ content: Notice.Content = .connection(
            of: NoticeSample.subject,
            from: .active,
            to: .disconnected,
            reason: .invalidGrant
        ),
        at: Timestamp = start,
        trace: TraceContext? = nil
    ) -> Notice {
        Notice(
            key: Notice.Key(userID: "u-1", number: 7),
            id: NoticeID(high: 0, low: 42 << 32),
            at: at,
            trace: trace,
            content: content,
            pendingSince: at,
            attempts: 0
        )
    }
}
