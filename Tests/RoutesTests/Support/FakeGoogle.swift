import Base
import Crypto
import Synchronization
import TestSupport

@testable import GoogleOAuth
@testable import Routes

/// Google in memory: returns the owners of access tokens that a test has set, and handles refreshes by a script.
final class FakeGoogle: AnsweringEndpoint {
    static let clientID = "123-ours.apps.googleusercontent.com"

    /// The content of both look-ups of one access token.
    struct Account: Sendable {
        var id = "g-1"
        var email: String? = "jane@gmail.com"
        var emailIsVerified = true
        var name: String? = "Jane Smith"
        var hostedDomain: String?
        var audience = FakeGoogle.clientID
        var authorizedParty: String?
        var subject: String?
        var scope: String? = "openid gmail"
        var lifetime: Int? = 1800
    }

    enum LookupResult: Sendable {
        case account(Account)
        case failure(LookupError)
        /// The request waits until it is cancelled.
        case noAnswer
    }

    enum RefreshBehavior: Sendable {
        case grant
        case failure(RefreshFailure)
        /// The request waits until ``FakeGoogle/release(_:)``.
        case hold
    }

    private struct State {
        var userInfo: [String: LookupResult] = [:]
        var tokenInfo: [String: LookupResult] = [:]
        var script: @Sendable (String) -> RefreshBehavior = { _ in .grant }
        var refreshed: [String] = []
        var revoked: [String] = []
        var lookups = 0
        var held: [CheckedContinuation<RefreshVerdict, Never>] = []
        var holdWaiter: CheckedContinuation<Void, Never>?
        var issued = 0
    }

    private let state = Mutex(State())

    var lookups: Int { state.withLock { $0.lookups } }
    var refreshed: [String] { state.withLock { $0.refreshed } }
    var revoked: [String] { state.withLock { $0.revoked } }

    func setAccount(_ token: String, _ account: Account = Account()) {
        setLookups(token, userInfo: .account(account), tokenInfo: .account(account))
    }

    func setLookups(_ token: String, userInfo: LookupResult, tokenInfo: LookupResult) {
        state.withLock {
            $0.userInfo[token] = userInfo
            $0.tokenInfo[token] = tokenInfo
        }
    }

    func handleRefreshes(by script: @escaping @Sendable (_ token: String) -> RefreshBehavior) {
        state.withLock { $0.script = script }
    }

    // MARK: Lookups

    func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo {
        let token = accessToken.reveal()
        // A token from a refresh belongs to the default account, unless a test sets another one.
        let fallback: LookupResult? = token.hasPrefix("fresh-") ? .account(Account()) : nil
        let account = try await account(state.withLock { $0.userInfo[token] } ?? fallback)
        var members: [String: JSONValue] = [
            "sub": .string(account.id), "email_verified": .bool(account.emailIsVerified),
        ]
        members["email"] = account.email.map { .string($0) }
        members["name"] = account.name.map { .string($0) }
        members["hd"] = account.hostedDomain.map { .string($0) }
        members["picture"] = .string("https://example.com/jane.png")
        guard let info = UserInfo(.object(members)) else { throw .unavailable(code: "flawed_answer") }
        return info
    }

    func tokenInfo(accessToken: Secret) async throws(LookupError) -> TokenInfo {
        let account = try await account(state.withLock { $0.tokenInfo[accessToken.reveal()] })
        var members: [String: JSONValue] = ["aud": .string(account.audience)]
        members["azp"] = account.authorizedParty.map { .string($0) }
        members["sub"] = account.subject.map { .string($0) }
        members["scope"] = account.scope.map { .string($0) }
        members["expires_in"] = account.lifetime.map { .string("\($0)") }
        guard let info = TokenInfo(.object(members)) else { throw .unavailable(code: "flawed_answer") }
        return info
    }

    private func account(_ result: LookupResult?) async throws(LookupError) -> Account {
        state.withLock { $0.lookups += 1 }
        switch result {
        case .account(let account): return account
        case .failure(let failure): throw failure
        case nil: throw .refused
        case .noAnswer:
            let (stream, continuation) = AsyncStream<Void>.makeStream()
            for await _ in stream {}
            continuation.finish()
            throw .unavailable(code: "cancelled")
        }
    }

    // MARK: Refreshes

    /// Returns once a refresh is held.
    func waitForHeldRefresh() async {
        await withCheckedContinuation { caller in
            let isHolding = state.withLock { state in
                if state.held.isEmpty { state.holdWaiter = caller }
                return !state.held.isEmpty
            }
            if isHolding { caller.resume() }
        }
    }

    /// Completes the held refreshes; later ones are granted.
    func release(_ verdict: RefreshVerdict) {
        let held = state.withLock { state in
            state.script = { _ in .grant }
            defer { state.held = [] }
            return state.held
        }
        for caller in held { caller.resume(returning: verdict) }
    }

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        guard mayStillSend() else { return ParsedRefreshResponse(verdict: .failed(.notSent(code: "not_sent"))) }
        let text = token.reveal()
        let script = state.withLock { state in
            state.refreshed.append(text)
            return state.script
        }
        switch script(text) {
        case .grant: return ParsedRefreshResponse(verdict: issue(for: text), status: 200)
        case .failure(let failure): return ParsedRefreshResponse(verdict: .failed(failure), status: 400)
        case .hold:
            let verdict = await withCheckedContinuation { caller in
                let waiter = state.withLock { state in
                    state.held.append(caller)
                    return state.holdWaiter.take()
                }
                waiter?.resume()
            }
            return ParsedRefreshResponse(verdict: verdict, status: 400)
        }
    }

    /// Sets the owner of the access tokens that come from a refresh token.
    func setOwner(ofRefreshToken token: String, _ result: LookupResult) {
        state.withLock { $0.userInfo["owner of \(token)"] = result }
    }

    private func issue(for refreshToken: String) -> RefreshVerdict {
        let number = state.withLock { state in
            state.issued += 1
            let token = "fresh-\(state.issued)"
            state.userInfo[token] = state.userInfo["owner of \(refreshToken)"]
            return state.issued
        }
        return .granted(
            TokenResponse(accessToken: Secret("fresh-\(number)"), lifetime: .seconds(3600), type: "Bearer")
        )
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse {
        state.withLock { $0.revoked.append(token.reveal()) }
        return .done
    }
}
