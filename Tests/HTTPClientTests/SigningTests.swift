import Crypto
import HTTPClient
import TestSupport
import Testing

@Suite("Requests signed for Amazon's services", .timeLimit(.minutes(10)))
struct SigningTests {
    private func request(
        _ server: ScriptedServer,
        session: String? = nil,
        key: String = "AKIDEXAMPLE",
        secret: String = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        region: String = "eu-west-1"
    ) -> HTTPRequest {
        HTTPRequest(
            method: .post,
            url: server.url,
            headers: [("Content-Type", "application/x-amz-json-1.1"), ("X-Amz-Target", "secretsmanager.ListSecrets")],
            body: HTTPBody(Array("{}".utf8)),
            signature: AWSSignature(
                region: region,
                service: "secretsmanager",
                credentials: AWSCredentials(
                    keyID: Secret(key),
                    secretKey: Secret(secret),
                    sessionToken: session.map { Secret($0) }
                )
            )
        )
    }

    @Test("The signature covers every header with a value, including the session token")
    func signedHeaders() async throws {
        let server = try ScriptedServer { _ in answer("{}") }
        defer { server.stop() }
        let client = try makeClient()
        _ = try await client.send(request(server, session: "FwoGZXIvYXdzE+/="))
        _ = try await client.send(request(server))
        let heads = server.received.map(\.head)
        #expect(heads[0].contains("X-Amz-Security-Token: FwoGZXIvYXdzE+/=\r\n"))
        #expect(heads[0].contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, "))
        #expect(!heads[1].lowercased().contains("x-amz-security-token"))
        #expect(heads[1].contains("SignedHeaders=content-type;host;x-amz-date;x-amz-target, "))
        for head in heads {
            #expect(head.contains("Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"))
            #expect(head.contains("/eu-west-1/secretsmanager/aws4_request, "))
            #expect(!head.contains("EXAMPLEKEY"))
        }
    }

    @Test("An unsigned request on the same handle contains nothing of an earlier signed one")
    func nothingStays() async throws {
        let server = try ScriptedServer { _ in answer("{}") }
        defer { server.stop() }
        let client = try makeClient { $0.maximumInFlight = 1 }
        _ = try await client.send(request(server, session: "token"))
        _ = try await client.send(post(server.url))
        let head = try #require(server.received.last).head.lowercased()
        #expect(!head.contains("authorization") && !head.contains("x-amz"))
    }

    @Test(
        "A part that would be read as another part is not sent",
        arguments: [
            ("AKID", "secret", "token\r\nX: y", "eu-west-1"), ("AK ID", "secret", "token", "eu-west-1"),
            ("", "secret", "token", "eu-west-1"), ("AKID", "", "token", "eu-west-1"),
            ("AKID", "secret", "", "eu-west-1"),
            ("AKID", "secret\0", "token", "eu-west-1"), ("AKID", "secret", "token", "eu-west-1:x"),
            ("AKID", "secret", "token", ""), ("AKID", "secret", "tökén", "eu-west-1"),
        ]
    )
    func malformed(key: String, secret: String, session: String, region: String) async throws {
        let server = try ScriptedServer { _ in answer("{}") }
        defer { server.stop() }
        let client = try makeClient()
        let bad = request(server, session: session, key: key, secret: secret, region: region)
        #expect(await outcome { () throws(HTTPFailure) in try await client.send(bad) }.failure?.kind == .invalidHeader)
        #expect(server.received.isEmpty)
    }

    @Test("No rendering shows a credential")
    func renderings() throws {
        let server = try ScriptedServer { _ in [] }
        defer { server.stop() }
        let signed = request(server, session: "SESSION", key: "KEYID", secret: "SECRETKEY")
        var dumped = ""
        dump(signed, to: &dumped)
        dump(signed.signature, to: &dumped)
        let text = "\(signed)\(String(reflecting: signed))\(String(describing: signed.signature))\(dumped)"
        for part in ["SESSION", "KEYID", "SECRETKEY"] { #expect(!text.contains(part)) }
    }
}
