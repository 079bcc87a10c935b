import Foundation
import Testing

@testable import WorkerTokens

@Suite("Notices of the worker")
struct NoticeTests {
    private static let text = "the secret that signs the notices, too"
    private static let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let sentAt = 1_795_231_059.0
    private static let body =
        #"{"id":"ntc_1","type":"grant.disconnected","timestamp":"2026-11-21T03:17:39.123Z","data":{"user_id":"u-1","#
        + #""grant_id":"00c3","connection":"default","labels":{"tenant":"acme"},"connected":false,"#
        + #""state":"disconnected","reason":"invalid_grant","former_state":"active"}}"#

    @Test("A vector of the authors of Standard Webhooks is accepted")
    func vector() throws {
        // https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/python/tests/test_webhooks.py
        let verifier = try NoticeVerifier(secrets: "\(Self.key)\n")
        let headers = [
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ]
        // The signature is right, and the body is not one of a worker.
        #expect(throws: NoticeError.unreadable) {
            try verifier.notice(
                in: #"{"test": 2432232314}"#.utf8,
                now: Date(timeIntervalSince1970: 1_614_265_330)
            ) { headers[$0] }
        }
    }

    @Test("A notice is read, with either form of a secret", arguments: [text, key])
    func members(secret: String) throws {
        let notice = try verified(secrets: secret, signedBy: [secret])
        #expect(notice.id == "ntc_1")
        #expect(notice.kind == .disconnected)
        #expect(Self.milliseconds(notice.timestamp) == 1_795_231_059_123)
        #expect(notice.userID == "u-1")
        #expect(notice.grantID == "00c3")
        #expect(notice.connection == "default")
        #expect(notice.isConnected == false)
        #expect(notice.state == "disconnected")
        #expect(notice.formerState == "active")
        #expect(notice.reason == "invalid_grant")
        #expect(notice.labels == ["tenant": "acme"])
        #expect(notice.lostScopes == [] && notice.grantedScopes == [])
        #expect(notice.expiresAt == nil && notice.sessionID == nil)
    }

    @Test("While a secret is replaced, either side can be first")
    func replacedSecret() throws {
        _ = try verified(secrets: Self.key, signedBy: [Self.text, Self.key])
        _ = try verified(secrets: "\(Self.text)\r\n\(Self.key)\r\n", signedBy: [Self.key])
    }

    @Test("Another secret, a changed body, id or time, and a cut signature are forgeries")
    func forgeries() throws {
        #expect(throws: NoticeError.forged) { try verified(secrets: Self.text, signedBy: [Self.key]) }
        #expect(throws: NoticeError.forged) { try verified(signedBy: []) }
        #expect(throws: NoticeError.forged) { try verified { $0.body += " " } }
        #expect(throws: NoticeError.forged) { try verified { $0.headers["webhook-id"] = "ntc_2" } }
        #expect(throws: NoticeError.forged) { try verified { $0.headers["webhook-timestamp"] = "1795231060" } }
        #expect(throws: NoticeError.forged) { try verified { $0.headers["webhook-signature"]?.removeLast() } }
        #expect(throws: NoticeError.forged) {
            try verified { $0.headers["webhook-signature"]?.replace("v1,", with: "v1a,") }
        }
    }

    @Test("A missing header is named", arguments: ["webhook-id", "webhook-timestamp", "webhook-signature"])
    func missingHeader(name: String) {
        #expect(throws: NoticeError.missingHeader(name)) { try verified { $0.headers[name] = nil } }
    }

    @Test(
        "A notice is accepted within five minutes, before and after",
        arguments: [(-301, false), (-300, true), (300, true), (301, false)]
    )
    func age(seconds: Double, isAccepted: Bool) throws {
        if isAccepted {
            _ = try verified(receivedAfter: seconds)
        } else {
            #expect(throws: NoticeError.expired) { try verified(receivedAfter: seconds) }
        }
    }

    @Test("A time that is no number is refused", arguments: ["", "-1795231059", "1795231059.0", "9999999999999", "+1"])
    func wrongTime(text: String) {
        #expect(throws: NoticeError.expired) { try verified { $0.headers["webhook-timestamp"] = text } }
    }

    @Test(
        "A secret that the worker refuses is refused here",
        arguments: ["", "\n", "too short", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", "\(text)\nshort"]
    )
    func unusableSecret(secrets: String) {
        #expect(throws: NoticeError.unusableSecret) { try NoticeVerifier(secrets: secrets) }
    }

    @Test("A kind of a later worker is read, and other members of the known ones")
    func otherKinds() throws {
        let later = try notice(#"{"id":"n","type":"grant.new","timestamp":"2026-11-21T03:17:39Z","data":{"x":[1]}}"#)
        #expect(later.kind.rawValue == "grant.new")
        #expect(later.userID == nil)
        let expiring = try notice(
            """
            {"id":"n","type":"grant.expiring","timestamp":"2026-11-21T03:17:39.123Z",
             "data":{"user_id":"u","grant_id":"g","connection":"work","expires_at":"2026-11-24T03:17:39.123Z"}}
            """
        )
        #expect(expiring.kind == .expiring)
        #expect(expiring.expiresAt.map(Self.milliseconds) == 1_795_490_259_123)
        let lost = try notice(
            """
            {"id":"n","type":"grant.scopes_lost","timestamp":"2026-11-21T03:17:39.123Z",
             "data":{"user_id":"u","lost_scopes":["a","b"],"granted_scopes":["c"]}}
            """
        )
        #expect(lost.lostScopes == ["a", "b"] && lost.grantedScopes == ["c"])
        let reuse = try notice(
            """
            {"id":"n","type":"session.reuse_detected","timestamp":"2026-11-21T03:17:39.123Z",
             "data":{"user_id":"u","session_id":"s"}}
            """
        )
        #expect(reuse.kind == .sessionReuseDetected && reuse.sessionID == "s")
    }

    @Test(
        "A signed body that is no notice is unreadable",
        arguments: [
            "", "[]", #"{"id":"n","type":"test","timestamp":"yesterday","data":{}}"#, #"{"id":"n","type":"test"}"#,
        ]
    )
    func unreadable(body: String) {
        #expect(throws: NoticeError.unreadable) { try notice(body) }
    }

    // MARK: Support

    private static func milliseconds(_ date: Date) -> Int { Int((date.timeIntervalSince1970 * 1000).rounded()) }

    private struct Delivery {
        var headers: [String: String]
        var body: String
    }

    private func notice(_ body: String) throws -> Notice {
        try verify(Self.delivery(of: body, signedBy: [Self.text]), secrets: Self.text, receivedAfter: 0)
    }

    private func verified(
        secrets: String = text,
        signedBy signing: [String] = [text],
        receivedAfter seconds: Double = 0,
        _ change: (inout Delivery) -> Void = { _ in }
    ) throws -> Notice {
        var delivery = Self.delivery(of: Self.body, signedBy: signing)
        change(&delivery)
        return try verify(delivery, secrets: secrets, receivedAfter: seconds)
    }

    private func verify(_ delivery: Delivery, secrets: String, receivedAfter seconds: Double) throws -> Notice {
        let verifier = try NoticeVerifier(secrets: secrets)
        let now = Date(timeIntervalSince1970: Self.sentAt + seconds)
        return try verifier.notice(in: delivery.body.utf8, now: now) { delivery.headers[$0] }
    }

    private static func delivery(of body: String, signedBy secrets: [String]) -> Delivery {
        let id = "ntc_1"
        let timestamp = String(Int(sentAt))
        let signatures = secrets.map { secret in
            let key =
                secret == key ? Array(Data(base64Encoded: String(secret.dropFirst(6))) ?? Data()) : Array(secret.utf8)
            let code = AuthenticationKey(key).code(for: Array("\(id).\(timestamp).\(body)".utf8))
            return "v1,\(Data(code).base64EncodedString())"
        }
        return Delivery(
            headers: [
                "webhook-id": id,
                "webhook-timestamp": timestamp,
                "webhook-signature": signatures.joined(separator: " "),
            ],
            body: body
        )
    }
}
