import Crypto
import Synchronization
import TestSupport

@testable import Base
@testable import GoogleOAuth

/// A token endpoint in memory that answers by a script, and records all requests.
///
/// A refresh token is `refresh-ACCOUNT-VERSION`. With rotation each answer brings the next version, and a version is
/// good until its successor is first used.
final class FakeGoogle: AnsweringEndpoint {
    struct Request: Sendable {
        var account: Int
        var version: Int
        /// The number of this request among those of its account, from one.
        var count: Int
        var at: BootInstant
    }

    enum Reply: Sendable {
        case grant
        /// Grants an access token with this lifetime.
        case grantFor(Duration)
        case answer(RefreshFailure)
        case verdict(RefreshVerdict)
        /// Does not answer until the test releases the request.
        case hold
        /// The process stands still before it has sent the request, until the test lets it continue.
        case freezeBeforeSending
    }

    struct Account: Sendable {
        var requestTimes: [BootInstant] = []
        var inFlight = 0
        var maximumInFlight = 0
        /// The newest refresh token that was used; earlier ones are dead.
        var usedVersion = 0
        var accessToken = ""
        /// The real end of the last access token, independent of any wall clock.
        var goodUntil: BootInstant?
        /// The longest time for which the account had no good access token.
        var longestGap: Duration = .zero
    }

    private struct Held {
        var account: Int
        var version: Int
        var caller: CheckedContinuation<RefreshFailure?, Never>
    }

    private struct State {
        var script: @Sendable (Request) -> Reply = { _ in .grant }
        var accounts: [Int: Account] = [:]
        var held: [Held] = []
        var holdWaiters: [(count: Int, caller: CheckedContinuation<Void, Never>)] = []
        var revoked: [String] = []
        var revocationFailure: LookupError?
        var duringRevocation: @Sendable () async -> Void = {}
        var issued = 0
    }

    let time: ManualTime
    let lifetime: Duration
    let rotates: Bool
    private let state = Mutex(State())

    init(time: ManualTime, lifetime: Duration, rotates: Bool) {
        self.time = time
        self.lifetime = lifetime
        self.rotates = rotates
    }

    var accounts: [Int: Account] { state.withLock { $0.accounts } }
    var calls: Int { state.withLock { $0.accounts.values.reduce(0) { $0 + $1.requestTimes.count } } }
    var revoked: [String] { state.withLock { $0.revoked } }
    func account(_ number: Int) -> Account { state.withLock { $0.accounts[number] ?? Account() } }

    func answer(by script: @escaping @Sendable (Request) -> Reply) {
        state.withLock { $0.script = script }
    }

    func failRevocations(with failure: LookupError?) {
        state.withLock { $0.revocationFailure = failure }
    }

    /// Runs `action` while each revocation is in flight.
    func duringRevocation(_ action: @escaping @Sendable () async -> Void) {
        state.withLock { $0.duringRevocation = action }
    }

    /// Returns the accounts that have no good access token now.
    func accountsWithoutToken() -> [Int] {
        let now = time.sinceBoot
        return state.withLock { state in
            state.accounts.filter { $0.value.goodUntil.map { $0 <= now } ?? true }.map(\.key).sorted()
        }
    }

    // MARK: Holding

    func waitUntilHolding(_ count: Int) async {
        await withCheckedContinuation { caller in
            let isMet = state.withLock { state in
                guard state.held.count < count else { return true }
                state.holdWaiters.append((count, caller))
                return false
            }
            if isMet { caller.resume() }
        }
    }

    /// Releases all held requests, with a failure or with a good answer.
    func release(_ failure: RefreshFailure? = nil) {
        let held = state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        for request in held { request.caller.resume(returning: failure) }
    }

    private func hold(_ account: Int, _ version: Int) async -> RefreshFailure? {
        await withCheckedContinuation { caller in
            let met = state.withLock { state in
                state.held.append(Held(account: account, version: version, caller: caller))
                let met = state.holdWaiters.filter { $0.count <= state.held.count }
                state.holdWaiters.removeAll { $0.count <= state.held.count }
                return met
            }
            for waiter in met { waiter.caller.resume() }
        }
    }

    // MARK: Answering

    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse {
        let parts = token.reveal().split(separator: "-")
        guard parts.count == 3, let account = Int(parts[1]), let version = Int(parts[2]) else {
            return ParsedRefreshResponse(verdict: .failed(.unknown(code: "no_such_token")))
        }
        let request = Request(
            account: account,
            version: version,
            count: self.account(account).requestTimes.count + 1,
            at: time.sinceBoot
        )
        let reply = state.withLock { $0.script }(request)
        if case .freezeBeforeSending = reply { _ = await hold(account, version) }
        guard mayStillSend() else { return ParsedRefreshResponse(verdict: .failed(.notSent(code: "withheld"))) }
        begin(request)
        defer { end(account) }
        switch reply {
        case .grant, .freezeBeforeSending:
            return ParsedRefreshResponse(verdict: issue(account, version), status: 200)
        case .grantFor(let lifetime):
            return ParsedRefreshResponse(verdict: issue(account, version, lifetime: lifetime), status: 200)
        case .answer(let failure):
            return ParsedRefreshResponse(verdict: .failed(failure), status: 400)
        case .verdict(let verdict):
            return ParsedRefreshResponse(verdict: verdict, status: 400)
        case .hold:
            if let failure = await hold(account, version) {
                return ParsedRefreshResponse(verdict: .failed(failure), status: 200)
            }
            return ParsedRefreshResponse(verdict: issue(account, version), status: 200)
        }
    }

    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse {
        guard mayStillSend() else { return .notSent(code: "withheld") }
        let action = state.withLock { state in
            state.revoked.append(token.reveal())
            return state.duringRevocation
        }
        await action()
        return state.withLock(\.revocationFailure).map { .failed($0) } ?? .done
    }

    private func begin(_ request: Request) {
        state.withLock { state in
            var account = state.accounts[request.account] ?? Account()
            account.requestTimes.append(time.sinceBoot)
            account.inFlight += 1
            account.maximumInFlight = max(account.maximumInFlight, account.inFlight)
            state.accounts[request.account] = account
        }
    }

    private func end(_ number: Int) {
        state.withLock { $0.accounts[number]?.inFlight -= 1 }
    }

    private func issue(_ number: Int, _ version: Int, lifetime: Duration? = nil) -> RefreshVerdict {
        let now = time.sinceBoot
        let lifetime = lifetime ?? self.lifetime
        return state.withLock { state in
            var account = state.accounts[number] ?? Account()
            guard version >= account.usedVersion else { return .failed(.invalidGrant) }
            account.usedVersion = version
            if let goodUntil = account.goodUntil, goodUntil < now {
                account.longestGap = max(account.longestGap, now - goodUntil)
            }
            state.issued += 1
            account.accessToken = "access-\(number)-\(state.issued)"
            account.goodUntil = now + lifetime
            state.accounts[number] = account
            return .granted(
                TokenResponse(
                    accessToken: Secret(account.accessToken),
                    lifetime: lifetime,
                    type: "Bearer",
                    scope: nil,
                    rotated: rotates ? Secret("refresh-\(number)-\(version + 1)") : nil,
                    refreshTokenLifetime: nil
                )
            )
        }
    }
}
