import Crypto
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth

@Suite("A security event token", .timeLimit(.minutes(10)))
struct SecurityEventReaderTests {
    private typealias EventType = SecurityEvent.EventType

    private func withIssuer(
        _ body: (SecurityEventIssuer, SecurityEventReader) async throws -> Void
    ) async throws {
        let issuer = try SecurityEventIssuer()
        try await body(issuer, try issuer.reader())
        try issuer.stop()
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let type: String
        let body: @Sendable (inout JSONLine) -> Void
        let event: SecurityEvent

        init(
            _ description: String,
            _ type: String,
            _ event: SecurityEvent,
            _ body: @escaping @Sendable (inout JSONLine) -> Void = { line in
                line.object("subject") { subject in
                    subject.field("subject_type", "iss-sub")
                    subject.field("iss", "https://accounts.google.com")
                    subject.field("sub", "117")
                }
            }
        ) {
            testDescription = description
            self.type = type
            self.event = event
            self.body = body
        }
    }

    private static func token(alg: String, _ token: String, type: String = "refresh_token")
        -> @Sendable (inout JSONLine) -> Void
    {
        { line in
            line.object("subject") { subject in
                subject.field("subject_type", "oauth_token")
                subject.field("token_type", type)
                subject.field("token_identifier_alg", alg)
                subject.field("token", token)
            }
        }
    }

    @Test(
        "is read as Google documents it",
        arguments: [
            Case("tokens-revoked", EventType.tokensRevoked, SecurityEvent(kind: .tokensRevoked, googleUserID: "117")),
            Case(
                "sessions-revoked",
                EventType.sessionsRevoked,
                SecurityEvent(kind: .sessionsRevoked, googleUserID: "117")
            ),
            Case(
                "account-enabled",
                EventType.accountEnabled,
                SecurityEvent(kind: .accountEnabled, googleUserID: "117")
            ),
            Case(
                "credential change",
                EventType.credentialChangeRequired,
                SecurityEvent(kind: .credentialChangeRequired, googleUserID: "117")
            ),
            Case(
                "account-disabled",
                EventType.accountDisabled,
                SecurityEvent(kind: .accountDisabled(reason: "hijacking"), googleUserID: "117")
            ) { line in
                line.object("subject") { subject in
                    subject.field("subject_type", "id_token_claims")
                    subject.field("iss", "https://accounts.google.com/")
                    subject.field("sub", "117")
                    subject.field("email", "a@example.com")
                }
                line.field("reason", "hijacking")
            },
            Case("verification", EventType.verification, SecurityEvent(kind: .verification(state: "x"))) { line in
                line.field("state", "x")
            },
            Case(
                "token by prefix",
                EventType.tokenRevoked,
                SecurityEvent(kind: .tokenRevoked(.prefix("1//0eabcdefghijk"))),
                token(alg: "prefix", "1//0eabcdefghijk")
            ),
            Case(
                "token by hash",
                EventType.tokenRevoked,
                SecurityEvent(kind: .tokenRevoked(.doubleHash("abc="))),
                token(alg: "hash_base64_sha512_sha512", "abc=")
            ),
            Case(
                "access token",
                EventType.tokenRevoked,
                SecurityEvent(kind: .other),
                token(alg: "prefix", "ya29", type: "access_token")
            ),
            Case("unknown alg", EventType.tokenRevoked, SecurityEvent(kind: .other), token(alg: "plain", "1//0e")),
            Case("unknown type", "https://example.com/e", SecurityEvent(kind: .other, googleUserID: "117")),
            Case("no subject", EventType.tokensRevoked, SecurityEvent(kind: .other)) { _ in },
            Case("another issuer's subject", EventType.tokensRevoked, SecurityEvent(kind: .other)) { line in
                line.object("subject") { subject in
                    subject.field("iss", "https://evil.example")
                    subject.field("sub", "117")
                }
            },
        ]
    )
    func kinds(example: Case) async throws {
        try await withIssuer { issuer, reader in
            let token = try issuer.token { line in
                line.field("iss", "https://accounts.google.com")
                line.array("aud") { list in
                    list.element("another.apps")
                    list.element("other.apps")
                }
                line.field("iat", issuer.time.now.milliseconds / 1000)
                line.field("exp", 1)
                line.field("jti", "abc")
                line.object("events") { events in events.object(example.type, example.body) }
            }
            let read = try await reader.read(token + [0x0a])
            #expect(read.id == "abc")
            #expect(read.issuedAt == issuer.time.now.flooredToSecond)
            #expect(read.happenedAt == nil)
            #expect(read.events == [example.event])
        }
    }

    @Test(
        "has a time of the event only if it is not after the issue",
        arguments: [(-60, -60), (0, 0), (1, nil)] as [(Int64, Int64?)]
    )
    func timeOfEvent(offset: Int64, read expected: Int64?) async throws {
        try await withIssuer { issuer, reader in
            let now = issuer.time.now.milliseconds / 1000
            let token = try issuer.token { line in
                line.field("iss", "https://accounts.google.com")
                line.field("aud", "other.apps")
                line.field("iat", now)
                line.field("toe", now + offset)
                line.field("jti", "abc")
                line.object("events") { events in events.object(EventType.verification) { _ in } }
            }
            let read = try await reader.read(token)
            #expect(read.issuedAt == Timestamp(secondsSince1970: now))
            #expect(read.happenedAt == expected.map { Timestamp(secondsSince1970: now + $0) })
        }
    }

    struct Flaw: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: SecurityEventError.Code
        let claims: @Sendable (inout JSONLine, Int64) -> Void

        init(
            _ description: String,
            _ code: SecurityEventError.Code,
            iss: String? = SecurityEventIssuer.name,
            aud: String? = SecurityEventIssuer.clientID,
            jti: String? = "j",
            ahead: Int64? = 0,
            eventCount: Int = 1
        ) {
            testDescription = description
            self.code = code
            claims = { line, now in
                if let iss { line.field("iss", iss) }
                if let aud { line.field("aud", aud) }
                if let jti { line.field("jti", jti) }
                if let ahead { line.field("iat", now + ahead) }
                line.object("events") { events in
                    for number in 0..<eventCount { events.object("https://example.com/\(number)") { _ in } }
                }
            }
        }
    }

    @Test(
        "with a faulty claim is refused with the code of RFC 8935",
        arguments: [
            Flaw("another issuer", .issuer, iss: "https://accounts.google.com.evil.example"),
            Flaw("no issuer", .issuer, iss: nil),
            Flaw("another audience", .audience, aud: "another.apps"),
            Flaw("no audience", .audience, aud: nil),
            Flaw("no jti", .request, jti: nil),
            Flaw("empty jti", .request, jti: ""),
            Flaw("long jti", .request, jti: String(repeating: "j", count: 256)),
            Flaw("no iat", .request, ahead: nil),
            Flaw("from the future", .request, ahead: 86_402),
            Flaw("no events", .request, eventCount: 0),
            Flaw("17 events", .request, eventCount: 17),
        ]
    )
    func flaws(flaw: Flaw) async throws {
        try await withIssuer { issuer, reader in
            let seconds = issuer.time.now.milliseconds / 1000
            let token = try issuer.token { flaw.claims(&$0, seconds) }
            let refusal = await #expect(throws: SecurityEventError.self) { try await reader.read(token) }
            guard case .invalid(let code, _)? = refusal else {
                Issue.record("the refusal is not final")
                return
            }
            #expect(code == flaw.code)
        }
    }

    @Test("may have sixteen events, and an iat of tomorrow")
    func limits() async throws {
        try await withIssuer { issuer, reader in
            let flaw = Flaw("none", .request, ahead: 86_400, eventCount: 16)
            let seconds = issuer.time.now.milliseconds / 1000
            let token = try issuer.token { flaw.claims(&$0, seconds) }
            #expect(try await reader.read(token).events.count == 16)
        }
    }

    @Test("is refused when it is forged, and the refusal does not show its claims")
    func forged() async throws {
        try await withIssuer { issuer, reader in
            let good = try issuer.goodToken()
            _ = try await reader.read(good)
            let otherKey = try TestKeys.key(2)
            let parts = String(decoding: good, as: UTF8.self).split(separator: ".").map(String.init)
            let confused = Base64URL.encode(Array(#"{"alg":"HS256","kid":"key-1"}"#.utf8)) + "." + parts[1]
            let code = Base64URL.encode(MessageKey(try otherKey.pem()).authenticate(Array(confused.utf8)))
            let forgedTokens: [[UInt8]] = [
                try issuer.goodToken(key: otherKey),
                try issuer.goodToken(keyID: "key-9"),
                Array("\(parts[0]).\(parts[1]).AAAA".utf8),
                Array("\(confused).\(code)".utf8),
                Array("\(Base64URL.encode(Array(#"{"alg":"none"}"#.utf8))).\(parts[1]).".utf8),
                Array("\(Base64URL.encode(Array(#"{"alg":"RS256"}"#.utf8))).\(parts[1]).\(parts[2])".utf8),
                [], Array("{}".utf8), [UInt8](repeating: 0x41, count: 70_000),
            ]
            for token in forgedTokens {
                await #expect(throws: SecurityEventError.self) { try await reader.read(token) }
            }
        }
    }

    @Test("is never accepted with any of its bytes changed", arguments: [UInt64(3)])
    func mutations(seed: UInt64) async throws {
        try await withIssuer { issuer, reader in
            let good = try issuer.goodToken()
            let random = SeededRandom(seed: seed)
            for round in 0..<1500 {
                var bytes = good
                bytes[Int(random.nextBits() % UInt64(bytes.count))] ^= UInt8(1 << (random.nextBits() % 8))
                await #expect(throws: SecurityEventError.self, "seed \(seed), round \(round)") {
                    try await reader.read(bytes)
                }
            }
        }
    }
}

extension Timestamp {
    fileprivate var flooredToSecond: Timestamp { Timestamp(secondsSince1970: milliseconds / 1000) }
}
