import Crypto
import SchedulerTestSupport
import TestSupport
import Testing

@testable import Base
@testable import Routes
@testable import Scheduler
@testable import Storage

@Suite("The user of a sign-in")
struct SignInTests {
    /// Stored users, a Google account, and the user that it signs in as.
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var stored: [User]
        var account: FakeGoogle.Account
        var signsIn: String?

        init(_ name: String, _ stored: [User], _ account: FakeGoogle.Account, as user: String?) {
            testDescription = name
            self.stored = stored
            self.account = account
            signsIn = user
        }
    }

    private static func user(
        _ email: String?,
        id: String = "42",
        google: String? = nil,
        isVerified: Bool? = true
    ) -> User {
        User(id: id, createdAt: ManualTime().now, email: email, emailIsVerified: isVerified, googleUserID: google)
    }

    @Test(
        "is found by the account's id, otherwise by an address that Google decides about",
        arguments: [
            Case("no user is stored", [], .init(), as: nil),
            Case("the id is known", [user("old@x.org", google: "g-1")], .init(), as: "42"),
            Case("the address is known", [user("JANE@gmail.com")], .init(), as: "42"),
            Case(
                "an old domain of Google's",
                [user("jane@googlemail.com")],
                .init(email: "jane@googlemail.com"),
                as: "42"
            ),
            Case(
                "a Workspace domain",
                [user("jane@x.org")],
                .init(email: "jane@x.org", hostedDomain: "x.org"),
                as: "42"
            ),
            Case("a domain outside of Google", [user("jane@x.org")], .init(email: "jane@x.org"), as: nil),
            Case(
                "a domain that ends like Google's",
                [user("jane@notgmail.com")],
                .init(email: "jane@notgmail.com"),
                as: nil
            ),
            Case("the address is another account's", [user("jane@gmail.com", google: "g-2")], .init(), as: nil),
            Case("the address is not verified", [user("jane@gmail.com", isVerified: false)], .init(), as: nil),
            Case("the address may be verified", [user("jane@gmail.com", isVerified: nil)], .init(), as: nil),
            Case(
                "two have the address",
                [user("jane@gmail.com", id: "1"), user("jane@gmail.com", id: "2")],
                .init(),
                as: nil
            ),
            Case(
                "one has the id, one the address",
                [user("jane@gmail.com", id: "1"), user(nil, id: "2", google: "g-1")],
                .init(),
                as: "2"
            ),
        ]
    )
    func matching(_ example: Case) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", example.account)
        try await fixture.store.transact { transaction in
            for user in example.stored { try transaction.insert(user) }
        }
        let tokens = try await fixture.signIn()
        let response = try await fixture.send("GET", "/api/auth/me", token: tokens.access)
        let id = try #require(response["id"]?.string)
        if let expected = example.signsIn {
            #expect(id == expected)
        } else {
            #expect(!example.stored.map(\.id).contains(id))
        }
        let user = try #require(try await fixture.store.user(id))
        #expect(user.googleUserID == "g-1")
        #expect(user.email == example.account.email)
        #expect(user.lastLoginAt == fixture.time.now)
        // Signing in again returns the same user.
        let again = try await fixture.send("GET", "/api/auth/me", token: try await fixture.signIn().access)
        #expect(again["id"]?.string == id)
    }

    @Test(
        "is found by address according to the setting",
        arguments: [
            (.verified, true, true), (.verified, nil, false), (.verified, false, false),
            (.any, true, true), (.any, nil, true), (.any, false, true),
            (.never, true, false), (.never, nil, false), (.never, false, false),
        ] as [(EmailLinking, Bool?, Bool)]
    )
    func linking(_ linking: EmailLinking, isVerified: Bool?, isLinked: Bool) async throws {
        let fixture = try AccountFixture(emailLinking: linking)
        fixture.google.setAccount("ya29.jane")
        let stored = Self.user("jane@gmail.com", isVerified: isVerified)
        try await fixture.store.transact { try $0.insert(stored) }
        let response = try await fixture.send("GET", "/api/auth/me", token: try await fixture.signIn().access)
        #expect((response["id"]?.string == stored.id) == isLinked)
    }

    @Test("is the same after retention has forgotten the address")
    func forgotten() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let stored = Self.user("jane@gmail.com", google: "g-1")
        try await fixture.store.transact { try $0.insert(stored) }
        try await fixture.importGrant()
        let now = fixture.time.now
        try await fixture.change { _ = $0.disconnect(reason: .invalidGrant, at: now) }
        try await fixture.store.forgetGrants(endedBefore: now + .seconds(1), at: now)
        #expect(try await fixture.store.user("42")?.email == nil)
        let response = try await fixture.send("GET", "/api/auth/me", token: try await fixture.signIn().access)
        #expect(response["id"]?.string == "42")
        #expect(try await fixture.store.user("42")?.email == "jane@gmail.com")
    }

    @Test("a user who signed up with another person's address does not share the owner's account")
    func claimedAddress() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let attacker = fixture.token(ofUser: "attacker", email: "jane@gmail.com")
        #expect(try await fixture.send("GET", "/v1/user/me", token: attacker).status == 200)
        let owner = try await fixture.send("GET", "/api/auth/me", token: try await fixture.signIn().access)
        #expect(owner["id"]?.string != "attacker")
    }

    @Test("a later backend token with a verified address allows linking the account")
    func verifiedLater() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        for isVerified in [false, true] {
            let token = fixture.sign { claims in
                claims.field("user_id", "42")
                claims.field("email", "jane@gmail.com")
                claims.field("email_verified", isVerified)
            }
            #expect(try await fixture.send("GET", "/v1/user/me", token: token).status == 200)
        }
        let response = try await fixture.send("GET", "/api/auth/me", token: try await fixture.signIn().access)
        #expect(response["id"]?.string == "42")
    }

    @Test("a token that the worker obtained by a refresh is not accepted, even after the next refresh")
    func vendedToken() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        // The Google token that the app itself obtained is still accepted.
        _ = try await fixture.signIn()
        var vended: [String] = []
        for _ in 1...2 {
            let token = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400)).accessToken
                .reveal()
            vended.append(token)
            fixture.google.setAccount(token)
            fixture.time.advance(by: .seconds(600))
        }
        for token in vended {
            let body = #"{"access_token":"\#(token)"}"#
            let response = try await fixture.send("POST", "/api/auth/mobile/google", json: body)
            #expect(response.statusAndDetail == "400 Invalid Google access token")
            #expect(try await fixture.connect(token, user: "attacker").statusAndCode == "400 INVALID_CREDENTIALS")
        }
    }

    @Test("a vended token is not accepted either if only the address of its account is known")
    func vendedTokenByAddress() async throws {
        let fixture = try AccountFixture()
        try await fixture.importGrant(owner: Grant.Owner(email: "JANE@gmail.com"))
        let token = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(60)).accessToken.reveal()
        fixture.google.setAccount(token)
        let body = #"{"access_token":"\#(token)"}"#
        #expect(try await fixture.send("POST", "/api/auth/mobile/google", json: body).status == 400)
    }

    @Test("a vended token is not accepted even after a service replaced it as often as allowed")
    func replacedTokens() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        let first = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400)).accessToken
        let obtained = fixture.time.sinceBoot
        var last = first
        // One refresh that is not quick, then five that are: the worker does not refresh more often.
        let pauses = [380, 11, 11, 11, 11, 25]
        for number in 0... {
            fixture.time.advance(by: .seconds(pauses[number % pauses.count]))
            guard fixture.time.sinceBoot - obtained < .seconds(3500) else { break }
            let next = try await fixture.engine.freshToken(of: "42", insteadOf: last).accessToken
            #expect(next != last)
            last = next
        }
        for token in [first, last] {
            fixture.google.setAccount(token.reveal())
            let body = #"{"access_token":"\#(token.reveal())"}"#
            #expect(try await fixture.send("POST", "/api/auth/mobile/google", json: body).status == 400)
        }
    }

    enum GrantChange: CaseIterable {
        case switchOfAccount, disconnection, deletion
    }

    @Test(
        "a vended token does not prove an identity after its grant was switched to another account, or ended",
        arguments: GrantChange.allCases
    )
    func vendedTokenOfFormerAccount(change: GrantChange) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//jane").status == 201)
        let token = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400)).accessToken.reveal()
        fixture.google.setAccount(token)
        let now = fixture.time.now
        switch change {
        case .switchOfAccount:
            fixture.google.setAccount("ya29.john", .init(id: "g-2", email: "john@gmail.com", name: "John"))
            #expect(try await fixture.connect("ya29.john", refreshToken: "1//john").status == 201)
        case .disconnection:
            try await fixture.change { _ = $0.disconnectByRequest(revokes: false, at: now) }
        case .deletion:
            try await fixture.change { _ = $0.disconnectByRequest(revokes: false, reason: .userDeleted, at: now) }
        }
        let body = #"{"access_token":"\#(token)"}"#
        let response = try await fixture.send("POST", "/api/auth/mobile/google", json: body)
        #expect(response.statusAndDetail == "400 Invalid Google access token")
        #expect(try await fixture.connect(token, user: "attacker").statusAndCode == "400 INVALID_CREDENTIALS")
    }

    @Test("a vended token of a grant without an account is not accepted for its user")
    func vendedTokenOfUnknownAccount() async throws {
        let fixture = try AccountFixture()
        let now = fixture.time.now
        try await fixture.store.transact { try $0.insert(User(id: "42", createdAt: now, googleUserID: "g-1")) }
        try await fixture.importGrant()
        let token = try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(60)).accessToken.reveal()
        fixture.google.setAccount(token)
        let body = #"{"access_token":"\#(token)"}"#
        #expect(try await fixture.send("POST", "/api/auth/mobile/google", json: body).status == 400)
    }

    @Test("new users have ids that look like UUIDs and differ")
    func identifiers() async throws {
        let fixture = try AccountFixture()
        var ids: Set<String> = []
        for number in 1...20 {
            fixture.google.setAccount("ya29.\(number)", .init(id: "g-\(number)", email: "user\(number)@x.org"))
            let tokens = try await fixture.signIn("ya29.\(number)")
            let response = try await fixture.send("GET", "/api/auth/me", token: tokens.access)
            let id = try #require(response["id"]?.string)
            #expect(id.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
            ids.insert(id)
        }
        #expect(ids.count == 20)
    }

    @Test("an inactive user cannot sign in")
    func inactive() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let user = User(id: "42", createdAt: fixture.time.now, googleUserID: "g-1", isActive: false)
        try await fixture.store.transact { try $0.insert(user) }
        let response = try await fixture.send("POST", "/api/auth/mobile/google", json: #"{"access_token":"ya29.jane"}"#)
        #expect(response.statusAndDetail == "401 Could not validate credentials")
    }
}
