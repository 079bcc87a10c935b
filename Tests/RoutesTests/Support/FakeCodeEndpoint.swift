import Base
import Crypto
import Scheduler
import Storage
import Synchronization
import TestSupport

@testable import GoogleOAuth
@testable import Routes

/// Google's side of server auth codes in memory, and the spill file of their tokens.
final class FakeCodeEndpoint: PartialGoogle {
    static let clientID = "123-server.apps.googleusercontent.com"

    private struct State {
        var client: OAuthClientCredentials?
        var answers: [String: CodeExchange] = [:]
        var exchanged: [String] = []
        var bindingKeys: [KeyID?] = []
        var credentials: [String] = []
        var accounts: [String: Result<String, LookupError>] = [:]
        var revoked: [String] = []
        var failedRevocations = 0
        var spilled: [ExchangedTokens] = []
        var spillError: FileError?
        var isHolding = false
        var held: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    var client: OAuthClientCredentials? { state.withLock { $0.client } }
    /// The codes that were sent, in order.
    var exchanged: [String] { state.withLock { $0.exchanged } }
    /// The client ids and secrets that they were sent with.
    var credentials: [String] { state.withLock { $0.credentials } }
    /// The keys whose proofs they were sent with.
    var bindingKeys: [KeyID?] { state.withLock { $0.bindingKeys } }
    var revoked: [String] { state.withLock { $0.revoked } }
    var spilled: [ExchangedTokens] { state.withLock { $0.spilled } }

    func configure(
        _ client: OAuthClientCredentials? = OAuthClientCredentials(id: clientID, secret: Secret("the-server's-secret"))
    ) {
        state.withLock { $0.client = client }
    }

    /// Sets the answer to a code; without one the code is unknown.
    func set(_ code: String, _ answer: CodeExchange) { state.withLock { $0.answers[code] = answer } }

    /// Sets the tokens for a code, without an ID token.
    func grant(
        _ code: String,
        access: String = "ya29.server",
        refresh: String? = "1//server",
        scope: String? = "openid gmail",
        refreshTokenLifetime: Duration? = nil,
        refreshTokenTimeout: Duration? = nil,
        ofAccount account: Result<String, LookupError> = .success("g-1")
    ) {
        var response = TokenResponse(
            accessToken: Secret(access),
            lifetime: .seconds(3599),
            type: "Bearer",
            scope: scope
        )
        response.rotated = refresh.map { Secret($0) }
        response.refreshTokenLifetime = refreshTokenLifetime
        response.refreshTokenTimeout = refreshTokenTimeout
        set(code, .granted(response))
        state.withLock { $0.accounts[access] = account }
    }

    func failRevocations(_ count: Int) { state.withLock { $0.failedRevocations = count } }
    func failSpill(_ error: FileError?) { state.withLock { $0.spillError = error } }

    /// Holds each exchange until ``release()``.
    func hold() { state.withLock { $0.isHolding = true } }

    func release() {
        let held = state.withLock { state in
            state.isHolding = false
            defer { state.held = [] }
            return state.held
        }
        for caller in held { caller.resume() }
    }

    // MARK: Google

    func exchange(
        _ code: Secret,
        client: OAuthClientCredentials,
        boundTo key: BindingKey?
    ) async -> CodeExchange {
        let text = code.reveal()
        state.withLock { state in
            state.exchanged.append(text)
            state.bindingKeys.append(key?.id)
            state.credentials.append("\(client.id) \(client.secret?.reveal() ?? "")")
        }
        await withCheckedContinuation { caller in
            let isHeld = state.withLock { state in
                if state.isHolding { state.held.append(caller) }
                return state.isHolding
            }
            if !isHeld { caller.resume() }
        }
        return state.withLock { $0.answers[text] } ?? .refused("invalid_grant: Malformed auth code.")
    }

    func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo {
        let id = try (state.withLock { $0.accounts[accessToken.reveal()] } ?? .failure(.refused)).get()
        guard let info = UserInfo(.object(["sub": .string(id)])) else { throw .unavailable(code: "flawed_answer") }
        return info
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse {
        state.withLock { state in
            state.revoked.append(token.reveal())
            guard state.failedRevocations > 0 else { return .done }
            state.failedRevocations -= 1
            return .failed(.unavailable(code: "http_503"))
        }
    }

    // MARK: The spill file

    func save(_ tokens: [ExchangedTokens]) async throws {
        try state.withLock { state in
            if let error = state.spillError { throw error }
            state.spilled += tokens
        }
    }
}
