import AccountClient
import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing

/// A backend of one user over a real socket: it issues, rotates and refuses tokens, and records the requests.
final class Backend: Sendable {
    /// A request as the tests see it.
    struct Asked: Sendable {
        /// Method and path, such as `POST /api/auth/refresh`.
        let line: String
        let bearer: String?
        let body: String
    }

    /// Answers a request in place of the backend; nil leaves it to the backend.
    typealias Override = @Sendable (Asked) -> [ScriptedServer.Step]?

    private struct State {
        var issued = 0
        var accessToken: String?
        var family: SessionFamily?
        var asked: [Asked] = []
        var seconds = 0
        var losesAnswers = false
    }

    private final class Book: Sendable {
        let state = Mutex(State())
    }

    static let now = Date(timeIntervalSince1970: 1_800_000_000)

    let url: URL
    private let book: Book
    private let server: ScriptedServer

    init(override: @escaping Override = { _ in nil }) throws {
        let book = Book()
        self.book = book
        server = try ScriptedServer { received in
            let asked = Self.asked(received)
            book.state.withLock { $0.asked.append(asked) }
            if let steps = override(asked) { return steps }
            return book.state.withLock { state in
                let answer = Self.answer(asked, &state)
                return state.losesAnswers ? [.close] : answer
            }
        }
        url = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
    }

    /// The server ends with this object: a test that still calls it must hold it.
    deinit { server.stop() }

    var asked: [Asked] { book.state.withLock { $0.asked } }
    var refreshes: Int { asked.count { $0.line == "POST /api/auth/refresh" } }

    func waitForRequests(_ count: Int) async { await server.waitForRequests(count) }

    /// Signs a user in on both sides, without a request.
    func signIn(into store: some TokenStore, secondsLeft: Int = 1800) throws {
        let (access, refresh) = book.state.withLock { Self.issue(&$0, secondsLeft: secondsLeft) }
        try store.save(access, for: .accessToken)
        try store.save(refresh, for: .refreshToken)
    }

    /// Refuses the access token from now on, as when it has expired or its key was changed.
    func refuseAccessToken() { book.state.withLock { $0.accessToken = nil } }

    /// Ends the session: neither token is accepted any longer.
    func endSession() {
        book.state.withLock {
            $0.accessToken = nil
            $0.family = nil
        }
    }

    /// Performs each request, and closes the connection instead of answering.
    func loseAnswers(_ loses: Bool) { book.state.withLock { $0.losesAnswers = loses } }

    /// Advances the server's clock and that of the clients.
    func advance(bySeconds seconds: Int) { book.state.withLock { $0.seconds += seconds } }

    func client(_ store: any TokenStore) throws -> AccountClient {
        let book = book
        return try AccountClient(
            baseURL: url,
            tokens: store,
            now: { Self.now + TimeInterval(book.state.withLock { $0.seconds }) }
        )
    }

    /// Returns a token with a readable payload and a meaningless signature.
    static func token(_ name: String, expiresIn seconds: Int) -> String {
        let payload = #"{"sub":"\#(name)??>>","exp":\#(Int(now.timeIntervalSince1970) + seconds)}"#
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
        let access = token("access-\(number)", expiresIn: state.seconds + secondsLeft)
        state.accessToken = access
        return (access, "refresh-\(number)")
    }

    /// Returns the tokens for a refresh token by the server's rules; nil for a refusal.
    private static func refresh(_ asked: Asked, _ state: inout State) -> (access: String, refresh: String)? {
        let number = asked.body.components(separatedBy: "refresh-").last.flatMap { Int($0.prefix { $0.isNumber }) }
        let present = state.family?.present(number ?? 0, successor: state.issued + 1, at: state.seconds)
        guard let present else { return nil }
        state.issued = max(state.issued, present)
        return pair(present, &state)
    }

    private static func asked(_ received: ScriptedServer.Received) -> Asked {
        let lines = received.head.components(separatedBy: "\r\n")
        let prefix = "authorization: bearer "
        let bearer = lines.first { $0.lowercased().hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
        return Asked(
            line: lines[0].replacingOccurrences(of: " HTTP/1.1", with: ""),
            bearer: bearer,
            body: String(decoding: received.body, as: UTF8.self)
        )
    }

    private static func answer(_ asked: Asked, _ state: inout State) -> [ScriptedServer.Step] {
        switch asked.line {
        case "POST /api/auth/mobile/google":
            return tokens(issue(&state))
        case "POST /api/auth/refresh":
            guard let pair = refresh(asked, &state) else { return refusal }
            return tokens(pair)
        case "POST /api/auth/logout":
            state.accessToken = nil
            state.family = nil
            return TestSupport.answer(#"{"message":"Successfully logged out"}"#)
        default:
            guard let accessToken = state.accessToken, asked.bearer == accessToken else {
                return TestSupport.answer(#"{"detail":"Not authenticated"}"#, status: "401 Unauthorized")
            }
            return TestSupport.answer(#"{"path":"\#(asked.line)"}"#)
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
