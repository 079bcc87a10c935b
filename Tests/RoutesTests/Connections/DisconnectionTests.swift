import Crypto
import Scheduler
import SchedulerTestSupport
import Storage
import TestSupport
import Testing

@testable import Base
@testable import GoogleOAuth
@testable import Routes

@Suite("Disconnecting and deleting")
struct DisconnectionTests {
    @Test("a new connection is due at its time")
    func scheduling() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane", .init(lifetime: 1))
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        let dueAt = try #require(try await fixture.grant()?.dueAt)
        #expect(dueAt <= fixture.time.now + .seconds(1))
    }

    // MARK: Disconnecting

    @Test("disconnecting revokes at Google and wipes the tokens, and a repetition has no effect")
    func disconnect() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        for _ in 1...2 {
            let response = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: fixture.token(ofUser: "42"))
            #expect(response.status == 200)
            #expect(response["code"] == .number("200"))
        }
        let events = try await fixture.store.events(of: try #require(try await fixture.grant()?.id), atMost: 10)
        #expect(events.count == 2)
        #expect(try await fixture.engine.revokeNow(grantOf: "42"))
        #expect(fixture.google.revoked == ["1//jane"])
        #expect(try await fixture.refreshToken() == nil)
        let profile = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        #expect(profile.data?["gmail_connection"]?["reason"] == .string("user_request"))
    }

    @Test("a grant that shares its account and project with another is not revoked")
    func sharedAccount() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//one", user: "1")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//two", user: "2")
        _ = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: fixture.token(ofUser: "1"))
        #expect(try await fixture.engine.revokeNow(grantOf: "1"))
        #expect(fixture.google.revoked.isEmpty)
        #expect(try await fixture.refreshToken(ofUser: "1") == nil)
        #expect(try await fixture.refreshToken(ofUser: "2") == "1//two")
    }

    @Test(
        "a grant that shares its account with one that Google ended an hour ago is revoked",
        arguments: [true, false]
    )
    func sharedWithDeadGrant(isDead: Bool) async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//one", user: "1")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//two", user: "2")
        let now = fixture.time.now
        try await fixture.change(ofUser: "2") { grant in
            // The token of a grant that needs its user might be alive.
            _ =
                isDead
                ? grant.disconnect(reason: .invalidGrant, at: now)
                : grant.requireSignIn(reason: GrantReason(rawValue: "invalid_rapt"), at: now)
        }
        fixture.time.advance(by: .seconds(3600))
        _ = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: fixture.token(ofUser: "1"))
        #expect(try await fixture.engine.revokeNow(grantOf: "1"))
        #expect(fixture.google.revoked == (isDead ? ["1//one"] : []))
    }

    @Test("a user who never connected can disconnect")
    func nothingToDisconnect() async throws {
        let fixture = try AccountFixture()
        let response = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: fixture.token(ofUser: "42"))
        #expect(response.status == 200)
        #expect(try await fixture.grant() == nil)
        let now = fixture.time.now
        let recorded = try await fixture.store.transact { try $0.disconnectTime(ofUserWithoutGrant: "42") }
        #expect(recorded == now, "an import must not connect the user again")
    }

    @Test("a reconnect does not revive a grant that its user ended", .timeLimit(.minutes(10)))
    func reconnectBeforeRevocation() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        _ = try await fixture.send("DELETE", "/v1/auth/gmail-tokens", token: fixture.token(ofUser: "42"))
        let response = try await fixture.connect("ya29.jane")
        #expect(response.data?["message"] == .string("Same Google account or first connection"))
        #expect(try await fixture.refreshToken() == nil)
        #expect(try await fixture.accessToken() == "ya29.jane")
        #expect(try await fixture.grant()?.state == .active)
    }

    // MARK: Deleting

    @Test("a deleted user is refused until the tombstone is deleted, then is a new user")
    func deletedUserReturns() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let token = fixture.sign(lifetime: .seconds(3 * 86_400)) { $0.field("user_id", "42") }
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        let response = try await fixture.send("DELETE", "/v1/user/me", token: token)
        #expect(response.status == 200)
        #expect(response["code"] == .number("200"))
        #expect(try await fixture.engine.revokeNow(grantOf: "42"))
        #expect(fixture.google.revoked == ["1//jane"])
        #expect(try await fixture.accessToken() == nil)

        for route in ["GET /v1/user/me", "DELETE /v1/auth/gmail-tokens"] {
            let parts = route.split(separator: " ").map(String.init)
            #expect(try await fixture.send(parts[0], parts[1], token: token).statusAndCode == "404 USER_NOT_FOUND")
        }
        #expect(try await fixture.connect("ya29.jane").statusAndCode == "404 USER_NOT_FOUND")
        let other = try await fixture.send("GET", "/api/auth/me", token: token)
        #expect(other.statusAndDetail == "401 Could not validate credentials")

        // The presented token is valid for longer than a day, and the tombstone is kept as long.
        fixture.time.advance(by: .seconds(2 * 86_400))
        _ = try await fixture.store.removeExpired(at: fixture.time.now)
        #expect(try await fixture.connect("ya29.jane").statusAndCode == "404 USER_NOT_FOUND")
        fixture.time.advance(by: .seconds(86_400))
        _ = try await fixture.store.removeExpired(at: fixture.time.now)
        let returned = try await fixture.connect("ya29.jane")
        #expect(returned.data?["message"] == .string("First Gmail connection"))
    }

    @Test("a deleted user is refused for as long as an earlier token of another device lives")
    func otherDevice() async throws {
        let fixture = try AccountFixture()
        let tablet = fixture.sign(lifetime: .seconds(30 * 86_400)) { $0.field("user_id", "42") }
        #expect(try await fixture.send("GET", "/v1/user/me", token: tablet).status == 200)
        let phone = fixture.token(ofUser: "42")
        #expect(try await fixture.send("DELETE", "/v1/user/me", token: phone).status == 200)
        for day in 1..<30 {
            fixture.time.advance(by: .seconds(86_400))
            _ = try await fixture.store.removeExpired(at: fixture.time.now)
            let response = try await fixture.send("GET", "/v1/user/me", token: tablet)
            #expect(response.statusAndCode == "404 USER_NOT_FOUND", "day \(day)")
        }
        fixture.time.advance(by: .seconds(86_400))
        _ = try await fixture.store.removeExpired(at: fixture.time.now)
        #expect(try await fixture.store.user("42") == nil)
    }

    @Test("deleting again with the same token gets the first response, without a write")
    func deletionRepeated() async throws {
        let fixture = try AccountFixture()
        let token = fixture.sign(lifetime: .seconds(3 * 86_400)) { $0.field("user_id", "42") }
        let first = try await fixture.send("DELETE", "/v1/user/me", token: token)
        #expect(first.status == 200)
        let before = fixture.store.transactions
        for path in ["/v1/user/me", "/v1/delete/me"] {
            let again = try await fixture.send("DELETE", path, token: token)
            #expect(again.status == 200 && again.body == first.body)
        }
        #expect(fixture.store.transactions == before)
        fixture.time.advance(by: .seconds(3 * 86_400 - 1))
        _ = try await fixture.store.removeExpired(at: fixture.time.now)
        #expect(try await fixture.send("DELETE", "/v1/user/me", token: token).status == 200)
        fixture.time.advance(by: .seconds(1))
        #expect(try await fixture.send("DELETE", "/v1/user/me", token: token).statusAndCode == "401 TOKEN_EXPIRED")
    }

    @Test("DELETE /v1/delete/me is another name of DELETE /v1/user/me")
    func deletionByOtherPath() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let token = fixture.token(ofUser: "42")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        #expect(try await fixture.send("DELETE", "/v1/delete/me", token: token).status == 200)
        #expect(try await fixture.send("GET", "/v1/user/me", token: token).statusAndCode == "404 USER_NOT_FOUND")
        #expect(try await fixture.engine.revokeNow(grantOf: "42"))
        #expect(fixture.google.revoked == ["1//jane"])
    }

    @Test("deleting ends the sessions; a later sign-in creates a new user")
    func deletionEndsSessions() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        let tokens = try await fixture.signIn()
        let id = try await fixture.send("GET", "/api/auth/me", token: tokens.access)["id"]?.string
        #expect(try await fixture.send("DELETE", "/v1/user/me", token: tokens.access).status == 200)
        #expect(try await fixture.refresh(tokens.refresh).statusAndDetail == "401 Invalid refresh token")
        #expect(
            try await fixture.send("GET", "/v1/user/me", token: tokens.access).statusAndCode == "404 USER_NOT_FOUND"
        )
        let again = try await fixture.send("GET", "/api/auth/me", token: try await fixture.signIn().access)
        #expect(again.status == 200)
        #expect(again["id"]?.string != id)
    }

    // MARK: Races

    @Test("a reconnect during a refresh that says invalid_grant stays connected", .timeLimit(.minutes(10)))
    func reconnectDuringRefresh() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//old")
        fixture.google.handleRefreshes { $0 == "1//old" ? .hold : .grant }
        let refresh = Task { try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400)) }
        await fixture.google.waitForHeldRefresh()
        #expect(try await fixture.connect("ya29.jane", refreshToken: "1//new").status == 201)
        fixture.google.release(.failed(.invalidGrant))
        _ = try await refresh.value
        let profile = try await fixture.send("GET", "/v1/user/me", token: fixture.token(ofUser: "42"))
        #expect(profile.data?["gmail_account_connected"] == .bool(true))
        #expect(try await fixture.refreshToken() == "1//new")
        #expect(fixture.google.refreshed == ["1//old", "1//new"])
    }

    @Test("a user who is deleted during a refresh stays deleted", .timeLimit(.minutes(10)))
    func deletionDuringRefresh() async throws {
        let fixture = try AccountFixture()
        fixture.google.setAccount("ya29.jane")
        _ = try await fixture.connect("ya29.jane", refreshToken: "1//jane")
        fixture.google.handleRefreshes { _ in .hold }
        let refresh = Task { try await fixture.engine.freshToken(of: "42", minimumLife: .seconds(86_400)) }
        await fixture.google.waitForHeldRefresh()
        #expect(try await fixture.send("DELETE", "/v1/user/me", token: fixture.token(ofUser: "42")).status == 200)
        fixture.google.release(
            .granted(TokenResponse(accessToken: Secret("late"), lifetime: .seconds(3600), type: "Bearer"))
        )
        await #expect(throws: VendingError.self) { try await refresh.value }
        #expect(try await fixture.grant()?.state == .disconnected)
        #expect(try await fixture.accessToken() != "late")
        #expect(try await fixture.engine.revokeNow(grantOf: "42"))
        #expect(try await fixture.accessToken() == nil)
        #expect(try await fixture.connect("ya29.jane").statusAndCode == "404 USER_NOT_FOUND")
    }

    @Test("simultaneous connections never leave one account's refresh token with another", .timeLimit(.minutes(10)))
    func simultaneousConnections() async throws {
        for _ in 1...100 {
            let fixture = try AccountFixture()
            fixture.google.setAccount("ya29.1", .init(id: "g-1", email: "one@x.org"))
            fixture.google.setAccount("ya29.2", .init(id: "g-2", email: "two@x.org"))
            _ = try await fixture.connect("ya29.1", refreshToken: "1//1")
            try await withThrowingTaskGroup(of: ParsedResponse.self) { group in
                for _ in 1...4 {
                    group.addTask { try await fixture.connect("ya29.1") }
                    group.addTask { try await fixture.connect("ya29.2", refreshToken: "1//2") }
                }
                for try await response in group { #expect(response.status == 201) }
            }
            let owner = try #require(try await fixture.grant()?.owner.googleUserID).dropFirst(2)
            #expect(try await fixture.accessToken() == "ya29.\(owner)")
            let refreshToken = try await fixture.refreshToken()
            #expect(refreshToken == nil || refreshToken == "1//\(owner)")
        }
    }
}
