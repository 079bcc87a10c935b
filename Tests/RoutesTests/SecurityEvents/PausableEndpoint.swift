import Base
import Crypto
import TestSupport

@testable import GoogleOAuth

/// A token endpoint that grants every refresh until a test lets it refuse, and responds only when the test allows it.
actor PausableEndpoint: AnsweringEndpoint {
    private var requests = 0
    private var heldRefreshes: [CheckedContinuation<Void, Never>] = []
    private var requestWaiters: [CheckedContinuation<Void, Never>] = []
    private var holds = false
    private var refuses = false

    func hold() { holds = true }

    func refuse() { refuses = true }

    func release() {
        holds = false
        for caller in heldRefreshes { caller.resume() }
        heldRefreshes = []
    }

    func waitForRequest() async {
        if requests > 0 { return }
        await withCheckedContinuation { requestWaiters.append($0) }
    }

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        requests += 1
        for waiter in requestWaiters { waiter.resume() }
        requestWaiters = []
        if holds { await withCheckedContinuation { heldRefreshes.append($0) } }
        guard !refuses else { return ParsedRefreshResponse(verdict: .failed(.invalidGrant), status: 400) }
        let tokens = TokenResponse(
            accessToken: Secret("ya29.late"),
            lifetime: .seconds(3599),
            type: "Bearer",
            scope: nil,
            rotated: Secret("1//0e-late"),
            refreshTokenLifetime: nil
        )
        return ParsedRefreshResponse(verdict: .granted(tokens), status: 200)
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse { .done }

    func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo {
        guard let info = UserInfo(.object(["sub": .string(SecurityEventFixture.account)])) else { throw .refused }
        return info
    }
}
