import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Routes
@testable import Storage

extension AppTokensTests {
    @Test("have the user's id in the claim that is set, and so have those of the shared secret")
    func userClaim() async throws {
        let fixture = try fixture(issuer: nil, audience: nil, userClaim: "uid")
        let login = try keys.token(Self.claims(at: fixture.time.now) { $0.field("uid", "u-1") })
        #expect(try await fixture.send("GET", "/api/auth/me", token: login)["id"]?.string == "u-1")
        let backend = fixture.sign { line in
            line.field("sub", "42")
            line.field("uid", "u-2")
        }
        #expect(try await fixture.send("GET", "/api/auth/me", token: backend)["id"]?.string == "u-2")
        #expect(
            try await fixture.send("GET", Self.me, token: fixture.token(ofUser: "42")).statusAndCode
                == "401 INVALID_TOKEN"
        )
    }

    @Test("of the former backend have it there too if they are refresh tokens")
    func formerRefreshToken() async throws {
        let now = ManualTime().now
        let fixture = try fixture(
            issuer: nil,
            audience: nil,
            userClaim: "uid",
            acceptFormerTokensUntil: now + .seconds(86_400)
        )
        try await fixture.store.transact { transaction in
            for id in ["12", "57"] { try transaction.insert(User(id: id, createdAt: now)) }
        }
        let former = fixture.sign { line in
            line.field("sub", "12")
            line.field("uid", "57")
            line.field("type", "refresh")
        }
        let access = try #require(try await fixture.refresh(former)["access_token"]?.string)
        #expect(try await fixture.send("GET", "/api/auth/me", token: access)["id"]?.string == "57")
    }

    @Test(
        "name no user by an address that is not verified",
        arguments: [(nil, "401 INVALID_TOKEN"), (false, "401 INVALID_TOKEN"), (true, "200")] as [(Bool?, String)]
    )
    func unverifiedAddress(isVerified: Bool?, expected: String) async throws {
        let fixture = try fixture(
            issuer: nil,
            audience: nil,
            userClaim: "email",
            acceptFormerTokensUntil: ManualTime().now + .seconds(86_400)
        )
        let write: (inout JSONLine) -> Void = { line in
            line.field("email", "ada@example.com")
            if let isVerified { line.field("email_verified", isVerified) }
        }
        for token in [try keys.token(Self.claims(at: fixture.time.now, write)), fixture.sign(write)] {
            #expect(try await fixture.send("GET", Self.me, token: token).statusAndCode == expected)
        }
        let former = fixture.sign { line in
            write(&line)
            line.field("type", "refresh")
        }
        #expect(try await fixture.refresh(former).status == (isVerified == true ? 200 : 401))
    }
}
