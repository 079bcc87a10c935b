import Crypto
import GoogleOAuth
import Scheduler
import SchedulerTestSupport
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Routes

@Suite("Accepted tokens of the app")
struct AccountConnectorTests {
    private static let path = "/v1/auth/gmail-tokens"

    // MARK: Success

    @Test("a first connection", arguments: [path, "/v1/auth/gmail/store-tokens"])
    func first(path: String) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let response = try await fixture.send(
            "POST",
            path,
            token: fixture.token(ofUser: "42"),
            json: """
                {"access_token":"ya29.jane","refresh_token":"1//jane","expires_in":3600,"scope":["a","b"],
                "email":"unverified@example.com"}
                """
        )
        #expect(response.status == 201)
        #expect(response["message"] == .string("Gmail OAuth tokens stored successfully!"))
        #expect(response["code"] == .number("201"))
        let expected: [String: JSONValue] = [
            "google_email": .string("jane@gmail.com"), "scope": .string("openid gmail"), "account_switch": .bool(false),
            "message": .string("First Gmail connection"),
        ]
        #expect(response.data?.object == expected)
        let grant = try #require(try await fixture.grant())
        #expect(grant.state == .active)
        #expect(grant.clientID == FakeGoogle.clientID)
        #expect(grant.owner.googleUserID == "g-1")
        #expect(grant.accessToken?.expiresAt == fixture.time.now + .seconds(1800))
        #expect(try await fixture.refreshToken() == "1//jane")
        #expect(try await fixture.accessToken() == "ya29.jane")
    }

    @Test("the body's values are used if Google has none")
    func unknownLifetimeAndScope() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", .init(scope: nil, lifetime: nil))
        let fields = #","expires_in":"600","scope":"a,b  c","refresh_token_expires_in":604800"#
        let response = try await fixture.connect("ya29.jane", refreshToken: "1//jane", fields: fields)
        #expect(response.data?["scope"] == .string("a b c"))
        let grant = try #require(try await fixture.grant())
        #expect(grant.accessToken?.expiresAt == fixture.time.now + .seconds(600))
        #expect(grant.refreshToken?.expiresAt == fixture.time.now + .seconds(604_800))
        #expect(grant.refreshToken?.consentedAt == fixture.time.now)
        let profile = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        #expect(profile.data?["gmail_connection"]?["expires_at"] == .string("2027-01-22T08:00:00Z"))
    }

    @Test("an unknown lifetime counts as an hour")
    func defaultLifetime() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", .init(scope: nil, lifetime: nil))
        let response = try await fixture.connect("ya29.jane")
        #expect(response.data?["scope"] == .string(""))
        #expect(try await fixture.grant()?.accessToken?.expiresAt == fixture.time.now + .seconds(3600))
    }

    @Test("a form")
    func form() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", .init(scope: nil, lifetime: nil))
        let response = try await fixture.send(
            "POST",
            Self.path,
            token: fixture.token(ofUser: "42"),
            form: "access_token=ya29.jane&refresh_token=1%2F%2Fjane&expires_in=600&scope=a+b&scope=c"
        )
        #expect(response.status == 201)
        #expect(response.data?["scope"] == .string("a b c"))
        #expect(try await fixture.refreshToken() == "1//jane")
    }

    // MARK: The same account and another

    @Test("without a refresh token the same account's stored one stays")
    func sameAccount() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        let former = try #require(try await fixture.grant())
        fixture.google.setAccount("ya29.wider", .init(scope: "openid gmail calendar"))
        let response = try await fixture.connect("ya29.wider")
        #expect(response.data?["account_switch"] == .bool(false))
        #expect(response.data?["message"] == .string("Same Google account or first connection"))
        #expect(try await fixture.refreshToken() == "1//jane")
        let grant = try #require(try await fixture.grant())
        #expect(grant.id == former.id && grant.generation == former.generation)
        #expect(grant.scope == "openid gmail calendar")
    }

    @Test("an already stored refresh token does not count as new")
    func sameToken() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        let former = try #require(try await fixture.grant())
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        #expect(try await fixture.grant()?.generation == former.generation)
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//newer")
        #expect(try await fixture.grant()?.generation == former.generation + 1)
        #expect(try await fixture.refreshToken() == "1//newer")
    }

    @Test("a connection of another account keeps nothing of the former one")
    func accountSwitch() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", .init(lifetime: 3599))
        fixture.google.setAccount("ya29.john", .init(id: "g-2", email: "john@gmail.com", name: "John"))
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        let former = try #require(try await fixture.grant())
        let response = try await fixture.connect("ya29.john")
        let hasLeft = try await fixture.store.transact { try $0.hasLeft(former.refreshToken, of: former) }
        #expect(hasLeft, "an import must not bring the former token back")
        #expect(response.data?["account_switch"] == .bool(true))
        #expect(response.data?["message"] == .string("Switching from jane@gmail.com to john@gmail.com"))
        #expect(try await fixture.refreshToken() == nil)
        #expect(try await fixture.accessToken() == "ya29.john")
        #expect(try await fixture.grant()?.owner.email == "john@gmail.com")
    }

    @Test(
        "a refresh token known to be another account's is not stored, whichever user has it",
        arguments: ["42", "43"]
    )
    func foreignRefreshToken(user: String) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", .init(lifetime: 3599))
        fixture.google.setAccount("ya29.john", .init(id: "g-2", email: "john@gmail.com", name: "John"))
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        let response = try await fixture.connect("ya29.john", refreshToken: "1//jane", user: user)
        #expect(response.status == 201)
        #expect(try await fixture.refreshToken(ofUser: user) == nil)
        #expect(try await fixture.grant(ofUser: user)?.owner.email == "john@gmail.com")
    }

    @Test("a token found to be another account's is not kept, even if the app sends it again")
    func lookedUpForeignRefreshToken() async throws {
        let fixture = try AccountFixture()
        try await fixture.importGrant()
        fixture.google.setOwner(ofRefreshToken: "1//imported", .account(.init(id: "g-2", email: "stored@gmail.com")))
        fixture.google.setAccount("ya29.jane")
        let response = try await fixture.connect("ya29.jane", refreshToken: "1//imported")
        #expect(response.data?["account_switch"] == .bool(true))
        #expect(try await fixture.refreshToken() == nil)
    }

    @Test("two users may connect one account with one refresh token")
    func sharedAccount() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        for user in ["42", "43"] {
            _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane", user: user)
            #expect(try await fixture.refreshToken(ofUser: user) == "1//jane")
        }
    }

    @Test("an unknown owner is looked up before the decision", arguments: ["g-1", "g-2"])
    func lookedUpOwner(owner: String) async throws {
        let fixture = try AccountFixture()
        try await fixture.importGrant()
        fixture.google.setOwner(ofRefreshToken: "1//imported", .account(.init(id: owner, email: "stored@gmail.com")))
        fixture.google.setAccount("ya29.jane")
        let response = try await fixture.connect("ya29.jane")
        let isSwitch = owner != "g-1"
        #expect(response.data?["account_switch"] == .bool(isSwitch))
        #expect(try await fixture.refreshToken() == (isSwitch ? nil : "1//imported"))
        #expect(fixture.google.refreshed == ["1//imported"])
        #expect(try await fixture.grant()?.owner.googleUserID == "g-1")
    }

    @Test("a dead grant without an owner is not a switch, and its token is not kept")
    func deadGrantWithoutOwner() async throws {
        let fixture = try AccountFixture()
        try await fixture.importGrant()
        fixture.google.handleRefreshes { _ in .failure(.invalidGrant) }
        fixture.google.setAccount("ya29.jane")
        let response = try await fixture.connect("ya29.jane")
        #expect(response.data?["account_switch"] == .bool(false))
        #expect(response.data?["message"] == .string("Same Google account or first connection"))
        #expect(try await fixture.refreshToken() == nil)
        #expect(try await fixture.grant()?.state == .active)
    }

    @Test("an owner that cannot be looked up now changes nothing")
    func unreachable() async throws {
        let fixture = try AccountFixture()
        try await fixture.importGrant()
        fixture.google.handleRefreshes { _ in .failure(.noAnswer(code: "timeout")) }
        fixture.google.setAccount("ya29.jane")
        let response = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        #expect(response.statusAndCode == "502 DEPENDENCY_FAILURE")
        #expect(try await fixture.refreshToken() == "1//imported")
        #expect(try await fixture.grant()?.owner == Grant.Owner())

        fixture.google.handleRefreshes { _ in .grant }
        fixture.google.setOwner(ofRefreshToken: "1//imported", .failure(.unavailable(code: "http_503")))
        fixture.time.advance(by: .seconds(3600))
        #expect(
            try await fixture.connect("ya29.jane", refreshToken: "1//jane").statusAndCode == "502 DEPENDENCY_FAILURE"
        )
        #expect(try await fixture.refreshToken() == "1//imported")
    }

    @Test("a refresh token of another account is recognised at its first refresh and never used again")
    func foreignRefreshToken() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        fixture.google.setOwner(ofRefreshToken: "1//other", .account(.init(id: "g-2", email: "other@x.org")))
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//other").status == 201)
        await #expect(throws: VendingError.self) {
            try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400))
        }
        let grant = try #require(try await fixture.grant())
        #expect(grant.state == .reauthRequired && grant.reason == .accountMismatch)
        #expect(grant.accessToken == nil)
        #expect(try await fixture.refreshToken() == "1//other")
        let profile = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        #expect(profile.data?["gmail_account_connected"] == .bool(false))
        // A connection without a refresh token does not restore it.
        #expect(try await fixture.connect("ya29.jane").status == 201)
        #expect(try await fixture.refreshToken() == nil)
        // With a refresh token of the right account the user is connected again.
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        let token = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(3000))
        #expect(token.accessToken.reveal().hasPrefix("fresh-"))
        #expect(try await fixture.grant()?.state == .active)
    }

    @Test("a grant that was imported with a wrong account is connected again by a sign-in with the token's account")
    func wrongImport() async throws {
        let fixture = try AccountFixture()
        try await fixture.importGrant(owner: Grant.Owner(googleUserID: "g-wrong"))
        let other = FakeGoogle.Account(id: "g-2", email: "other@x.org")
        fixture.google.setOwner(ofRefreshToken: "1//imported", .account(other))
        await #expect(throws: VendingError.self) {
            try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(60))
        }
        #expect(try await fixture.grant()?.reason == .accountMismatch)
        fixture.google.setAccount("ya29.other", other)
        #expect(try await fixture.connect("ya29.other", refreshToken: "1//imported").status == 201)
        _ = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400))
        let grant = try #require(try await fixture.grant())
        #expect(grant.state == .active && grant.owner.googleUserID == "g-2" && grant.isProven)
    }

    @Test("while the account of a new refresh token cannot be looked up, the app's own token is vended")
    func uncheckedRefreshToken() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        fixture.google.setOwner(ofRefreshToken: "1//jane", .failure(.unavailable(code: "http_503")))
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        let token = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400))
        #expect(token.accessToken == Secret("ya29.jane") && token.warning == "account_unchecked")
        let grant = try #require(try await fixture.grant())
        #expect(grant.state == .retrying && grant.reason == .accountUnchecked)
        #expect(try await fixture.accessToken() == "ya29.jane")
        #expect(try await fixture.refreshToken() == "1//jane")
    }
}
