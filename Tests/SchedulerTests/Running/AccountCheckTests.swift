import Base
import Crypto
import Storage
import Synchronization
import TestSupport
import Testing

@testable import GoogleOAuth
@testable import Scheduler

@Suite("The account of a first refresh")
struct AccountCheckTests {
    /// The account in an answer, the account from userinfo, and the code of the verdict that counts.
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var idToken: String?
        var userInfo: Result<String, LookupError>?
        var mayLookUp = true
        var code: String
    }

    @Test(
        "decides if the answer counts",
        arguments: [
            Case(testDescription: "ID token of the account", idToken: token(#"{"sub":"g-1"}"#), code: "granted"),
            Case(testDescription: "ID token of another", idToken: token(#"{"sub":"g-2"}"#), code: "account_mismatch"),
            Case(testDescription: "userinfo names the account", userInfo: .success("g-1"), code: "granted"),
            Case(testDescription: "userinfo names another", userInfo: .success("g-2"), code: "account_mismatch"),
            Case(
                testDescription: "an ID token that cannot be read",
                idToken: "e30.%%.x",
                userInfo: .success("g-1"),
                code: "granted"
            ),
            Case(
                testDescription: "an ID token without an account",
                idToken: token("{}"),
                userInfo: .success("g-2"),
                code: "account_mismatch"
            ),
            Case(
                testDescription: "Google is away",
                userInfo: .failure(.unavailable(code: "http_503")),
                code: "account_unchecked"
            ),
            Case(testDescription: "userinfo refuses", userInfo: .failure(.refused), code: "account_unchecked"),
            Case(testDescription: "no time to ask", mayLookUp: false, code: "account_unchecked"),
        ]
    )
    func verdicts(_ example: Case) async throws {
        let endpoint = LookupEndpoint(example.userInfo)
        let tokens = TokenResponse(
            accessToken: Secret("new"),
            lifetime: .seconds(3600),
            type: "Bearer",
            rotated: Secret("1//rotated"),
            idToken: example.idToken.map { Secret($0) }
        )
        let checked = await endpoint.checkAccount(
            of: ParsedRefreshResponse(verdict: .granted(tokens), status: 200),
            for: try Self.grant(account: "g-1"),
            mayLookUp: example.mayLookUp
        )
        #expect(checked.verdict.code == example.code)
        #expect(endpoint.lookups == (example.userInfo == nil ? 0 : 1))
        if case .flawed(_, let rotated) = checked.verdict { #expect(rotated == Secret("1//rotated")) }
    }

    @Test("is checked until the refresh token is proven, and only if the account is known")
    func needed() throws {
        #expect(try Self.grant(account: "g-1").needsAccountCheck)
        #expect(try !Self.grant(account: nil).needsAccountCheck)
        #expect(try !Self.grant(account: "g-1", isProven: true).needsAccountCheck)
    }

    @Test(
        "is left out for a grant whose stored scopes do not let the account be looked up",
        arguments: [
            ("https://www.googleapis.com/auth/gmail.readonly", false), ("", false), ("mail openidx", false),
            ("mail openid", true), ("email", true), ("profile mail", true),
            ("https://www.googleapis.com/auth/userinfo.email", true),
            ("mail https://www.googleapis.com/auth/userinfo.profile", true),
        ]
    )
    func scopes(scope: String, isNeeded: Bool) throws {
        var grant = try Self.grant(account: "g-1")
        grant.scope = scope
        #expect(grant.needsAccountCheck == isNeeded)
    }

    private static func grant(account: String?, isProven: Bool = false) throws -> Grant {
        var grant = try Sample.grant(isProven: isProven)
        grant.owner.googleUserID = account
        return grant
    }

    private static func token(_ claims: String) -> String {
        ["{}", claims, "signature"].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    }
}

/// An endpoint that only answers requests about accounts.
private final class LookupEndpoint: AnsweringEndpoint {
    private let saying: Result<String, LookupError>?
    private let count = Mutex(0)

    init(_ saying: Result<String, LookupError>?) {
        self.saying = saying
    }

    var lookups: Int { count.withLock { $0 } }

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse { .good }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse { .done }

    func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo {
        count.withLock { $0 += 1 }
        let account = try saying?.get()
        guard let info = UserInfo(.object(["sub": .string(account ?? "nobody")])) else { throw .refused }
        return info
    }
}
