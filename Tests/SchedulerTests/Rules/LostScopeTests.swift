import GoogleOAuth
import Storage
import Testing

@testable import Scheduler

@Suite("Scopes that an answer no longer grants")
struct LostScopeTests {
    @Test(
        "A decision names the lost scopes by their canonical names",
        arguments: [
            ("openid email", "openid email", []), ("openid email", "email openid", []),
            ("openid email", "openid https://www.googleapis.com/auth/userinfo.email", []),
            ("openid", "openid https://mail.google.com/", []), ("", "openid", []),
            ("openid https://mail.google.com/", "openid", ["https://mail.google.com/"]),
            ("profile https://mail.google.com/", "openid", ["profile", "https://mail.google.com/"]),
        ] as [(String, String, [String])]
    )
    func lost(former: String, granted: String, lost: [String]) throws {
        var grant = try Sample.grant()
        grant.scope = former
        var fixture = RulesFixture()
        let decision = fixture.decide(try Sample.granted(at: fixture.now, scope: granted), on: &grant)
        #expect(decision.lostScopes == lost)
        #expect(Set(grant.scope.split(separator: " ")) == Set(granted.split(separator: " ")))
    }

    @Test("An answer without scopes, and a refusal, lose none")
    func silence() throws {
        for answer in [try Sample.granted(), .failed(.invalidGrant, retryAfter: nil)] {
            var grant = try Sample.grant()
            var fixture = RulesFixture()
            #expect(fixture.decide(answer, on: &grant).lostScopes.isEmpty)
        }
    }
}
