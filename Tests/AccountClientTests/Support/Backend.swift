import AccountClient
import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing

/// A backend of one user over a real socket: it issues, rotates and refuses tokens, and records the requests.
final class Backend: Sendable {
    /// A received request.
    struct Request: Sendable {
        /// Method and path, such as `POST /api/auth/refresh`.
        let line: String
        let bearer: String?
        let body: String
    }

    /// Handles a request in place of the backend; nil leaves it to the backend.
    typealias Override = @Sendable (Request) -> [ScriptedServer.Step]?

    private struct State {
        var issued = 0
        var accessToken: String?
        var family: SessionFamily?
        var requests: [Request] = []
        var seconds = 0
        var losesResponses = false
    }

    private final class SharedState: Sendable {
        let state = Mutex(State())
    }

    static let now = Date(timeIntervalSince1970: 1_800_000_000)

    let url: URL
    private let shared: SharedState
    private let server: ScriptedServer

    init(override: @escaping Override = { _ in nil }) throws {
        let shared = SharedState()
        self.shared = shared
        server = try ScriptedServer { received in
            let request = Self.request(received)
            shared.state.withLock { $0.requests.append(request) }
            if let steps = override(request) { return steps }
            return shared.state.withLock { state in
                let steps = Self.steps(for: request, &state)
                return state.losesResponses ? [.close] : steps
            }
        }
        url = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
    }

    /// The server ends with this object: a test that still calls it must keep a reference.
    deinit { server.stop() }

    var requests: [Request] { shared.state.withLock { $0.requests } }
    var refreshes: Int { requests.count { $0.line == "POST /api/auth/refresh" } }

    func waitForRequests(_ count: Int) async { await server.waitForRequests(count) }

    /// Signs a user in on both sides, without a request.
    func signIn(into store: some TokenStore, secondsLeft: Int = 1800) throws {
        let (access, refresh) = shared.state.withLock { Self.issue(&$0, secondsLeft: secondsLeft) }
        try store.save(access, for: .accessToken)
        try store.save(refresh, for: .refreshToken)
    }

    /// Refuses the access token from now on, as when it has expired or its key was changed.
    func refuseAccessToken() { shared.state.withLock { $0.accessToken = nil } }

    /// Ends the session: neither token is accepted any longer.
    func endSession() {
        shared.state.withLock {
            $0.accessToken = nil
            $0.family = nil
        }
    }

    /// Performs each request, and closes the connection instead of responding.
    func loseResponses(_ loses: Bool) { shared.state.withLock { $0.losesResponses = loses } }

    /// Advances the server's clock and that of the clients.
    func advance(bySeconds seconds: Int) { shared.state.withLock { $0.seconds += seconds } }

    func client(_ store: any TokenStore) throws -> AccountClient {
        try AccountClient(baseURL: url, tokens: store, now: clock)
    }

    /// Returns a client of an app that signs its users in elsewhere.
    func client(accessToken: @escaping @Sendable (_ isRenewed: Bool) async throws -> String?) throws -> AccountClient {
        try AccountClient(baseURL: url, accessToken: accessToken, now: clock)
    }

    private var clock: @Sendable () -> Date {
        { [shared] in Self.now + TimeInterval(shared.state.withLock { $0.seconds }) }
    }

    /// Returns a token with a readable payload and a meaningless signature.
    static func token(_ name: String, user: String? = nil, session: String? = nil, expiresIn seconds: Int) -> String {
        let session = session.map { #","sid":"\#($0)""# } ?? ""
        let payload = #"{"sub":"\#(user ?? name)??>>","exp":\#(Int(now.timeIntervalSince1970) + seconds)\#(session)}"#
        let text = Data(payload.utf8).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
        return "e30.\(text).\(name)"
    }

    private static func issue(_ state: inout State, secondsLeft: Int = 1800) -> (access: String, refresh: String) {
        state.issued += 1
        state.family = SessionFamily(first: state.issued, at: state.seconds)
        return pair(state.issued, &state, secondsLeft: secondsLeft)
    }

    private static func pair(_ number: Int, _ state: inout State, secondsLeft: Int = 1800) -> (
        access: String, refresh: String
    ) {
        let access = token("access-\(number)", user: "ada", expiresIn: state.seconds + secondsLeft)
        state.accessToken = access
        return (access, "refresh-\(number)")
    }

    /// Returns the tokens for a refresh token by the server's rules; nil for a refusal.
    private static func refresh(_ request: Request, _ state: inout State) -> (access: String, refresh: String)? {
        let number = request.body.components(separatedBy: "refresh-").last.flatMap { Int($0.prefix { $0.isNumber }) }
        let present = state.family?.present(number ?? 0, successor: state.issued + 1, at: state.seconds)
        guard let present else { return nil }
        state.issued = max(state.issued, present)
        return pair(present, &state)
    }

    private static func request(_ received: ScriptedServer.Received) -> Request {
        let lines = received.head.components(separatedBy: "\r\n")
        let prefix = "authorization: bearer "
        let bearer = lines.first { $0.lowercased().hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
        return Request(
            line: lines[0].replacingOccurrences(of: " HTTP/1.1", with: ""),
            bearer: bearer,
            body: String(decoding: received.body, as: UTF8.self)
        )
    }

    private static func steps(for request: Request, _ state: inout State) -> [ScriptedServer.Step] {
        switch request.line {
        case "POST /api/auth/mobile/google":
            return tokens(issue(&state))
        case "POST /api/auth/refresh":
            guard let pair = refresh(request, &state) else { return refusal }
            return tokens(pair)
        case "POST /api/auth/logout":
            state.accessToken = nil
            state.family = nil
            return TestSupport.answer(#"{"message":"Successfully logged out"}"#)
        default:
            guard let accessToken = state.accessToken, request.bearer == accessToken else {
                return TestSupport.answer(#"{"detail":"Not authenticated"}"#, status: "401 Unauthorized")
            }
            return TestSupport.answer(#"{"path":"\#(request.line)"}"#)
        }
    }

    /// The server's refusal of a refresh token whose session has ended.
    static let refusal = TestSupport.answer(#"{"detail":"Invalid refresh token"}"#, status: "401 Unauthorized")

    static func tokens(_ pair: (access: String, refresh: String)) -> [ScriptedServer.Step] {
        TestSupport.answer(
            """
            {"access_token":"\(pair.access)","refresh_token":"\(pair.refresh)","token_type":"bearer","expires_in":1800}
            """
        )
    }
}

/// Holds the server's threads until a test releases them.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func pass() {
        semaphore.wait()
        semaphore.signal()
    }

    func open() { semaphore.signal() }
}

extension AccountClient {
    /// Makes a call that needs a bearer.
    func status(of path: String = "things") async throws(AccountError) -> Int {
        try await perform(URLRequest(url: baseURL.appendingPathComponent(path))).1.statusCode
    }
}
