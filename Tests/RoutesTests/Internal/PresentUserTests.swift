import Status
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import HTTPServer
@testable import Routes

@Suite("A service that gets tokens only of users who are present")
struct PresentUserTests {
    private static let exchange = "grant_type=urn:ietf:params:oauth:grant-type:token-exchange"
    private static let types = "urn:ietf:params:oauth:token-type:"

    private static func appToken(_ fixture: VendingFixture, user: String = "u/1", lifetime: Int64 = 3600) -> String {
        var claims = JSONLine()
        claims.field("sub", user)
        claims.field("exp", fixture.time.now.milliseconds / 1000 + lifetime)
        return fixture.signer.sign(claims).reveal()
    }

    private static func post(
        _ fixture: VendingFixture,
        _ form: String,
        as service: String = "assistant",
        credential: String = VendingFixture.presentCredential
    ) async -> ParsedResponse {
        let request = ServerRequest(
            method: "POST",
            path: "/oauth2/token",
            headers: [("Content-Type", "application/x-www-form-urlencoded")],
            body: Array("\(form)&client_id=\(service)&client_secret=\(credential)".utf8)
        )
        return ParsedResponse(await fixture.handler.tokenEndpointResponse(to: request))
    }

    @Test(
        "exchanges the user's own token, and the audit says that the user was present",
        arguments: ["jwt", "access_token"]
    )
    func exchanged(type: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let subject = "\(Self.exchange)&subject_token_type=\(Self.types)\(type)&subject_token="
        let response = await Self.post(fixture, subject + Self.appToken(fixture))
        #expect(response.token == "stored")
        #expect(response["issued_token_type"]?.string == "\(Self.types)access_token")
        let named = await Self.post(
            fixture,
            "grant_type=refresh_token&refresh_token=u/1",
            as: "full",
            credential: VendingFixture.credential
        )
        #expect(named.token == "stored")
        #expect(fixture.audit.vends.map { $0["user"]?.string } == ["present", "named"])
        #expect(fixture.audit.vends[0]["service"]?.string == "assistant")
    }

    @Test("gets nothing by a user's name, on any route")
    func named() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        try await fixture.makeImmediatelyReadable()
        let service = try #require(fixture.services.service(presenting: VendingFixture.presentCredential))
        let handle = try service.handle(of: "u/1")
        let refreshType = "subject_token_type=\(Self.types)refresh_token"
        for form in [
            "grant_type=refresh_token&refresh_token=u/1", "grant_type=refresh_token&refresh_token=\(handle)",
            "\(Self.exchange)&\(refreshType)&subject_token=u/1",
        ] {
            #expect(await Self.post(fixture, form).error == "400 unauthorized_client")
        }
        let bearer = "Bearer \(VendingFixture.presentCredential)"
        let response = await fixture.send(authorization: [bearer])
        #expect(response.error == "403 forbidden")
        #expect(response["message"]?.string?.contains("subject_token") == true)
        #expect(fixture.sendImmediate(credential: VendingFixture.presentCredential) == nil)
        #expect(!service.mayHaveTokens(ofUser: "u/1"))
        #expect(fixture.audit.vends.map { $0["user"]?.string } == Array(repeating: "named", count: 4))
        let lookup = fixture.lookup(DatabaseReadiness(store: fixture.store, time: fixture.time))
        let request = ServerRequest(
            method: "GET",
            path: "/users",
            query: [("user", "u/1")],
            headers: [("Authorization", bearer)]
        )
        await #expect(throws: ServiceError.notOperator) { try await lookup.user(request) }
    }

    @Test("is told that a subject token is refused, and not that the user is gone")
    func refused() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let subject = "\(Self.exchange)&subject_token_type=\(Self.types)jwt&subject_token="
        let foreign = try TokenSigner(secrets: [Secret("another secret of more than thirty-two bytes")])
        var claims = JSONLine()
        claims.field("sub", "u/1")
        claims.field("exp", fixture.time.now.milliseconds / 1000 + 60)
        for token in ["u/1", foreign.sign(claims).reveal(), Self.appToken(fixture, lifetime: -1)] {
            #expect(await Self.post(fixture, subject + token).error == "400 invalid_request")
        }
        #expect(fixture.audit.vends.map { $0["user"]?.string } == Array(repeating: "present", count: 3))
        #expect(await Self.post(fixture, subject + Self.appToken(fixture, user: "u/2")).error == "400 invalid_grant")
        #expect(
            await Self.post(fixture, "\(subject)\(String(repeating: "a", count: 8193))").error == "400 invalid_request"
        )
    }

    @Test("is bound to its list of users even with a user's token, if it has one")
    func limited() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        try await fixture.add(user: "u/2")
        let subject =
            "\(Self.exchange)&scope=\(VendingFixture.gmail)&subject_token_type=\(Self.types)jwt&subject_token="
        for (user, expected) in [("u/1", "200 "), ("u/2", "400 unauthorized_client")] {
            let response = await Self.post(
                fixture,
                subject + Self.appToken(fixture, user: user),
                as: "limited",
                credential: VendingFixture.limitedCredential
            )
            #expect(response.error == expected)
        }
    }
}
