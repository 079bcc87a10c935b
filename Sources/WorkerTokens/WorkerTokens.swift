/// Gets your users' Google access tokens from a refresh-worker, for a server in Swift.
///
/// Create one for the whole server, so that all its tasks share the tokens and the requests in flight.
///
///     let tokens = try WorkerTokens(unixSocket: "/run/refresh-worker/internal.sock", credential: credential)
///     let token = try await tokens.token(for: "alice")
///     request.headers.add(name: "Authorization", value: "Bearer \(token.value)")
///
/// A token is kept in memory until it has too little time left, so most calls make no request. ``forget(user:)`` drops
/// a user's tokens before that.
public actor WorkerTokens {
    /// Sends one request to the worker and returns its response, whatever its status.
    ///
    /// It must not follow redirects, and must end after ``Request/timeout``. Any error that it throws becomes
    /// ``TokenError/unreachable(description:)``.
    public typealias Transport = @Sendable (Request) async throws -> Response

    /// The seconds that a token must have left, if a caller does not say: what the worker assumes too.
    public static let defaultMinimumLife = 60

    private let requests: RequestBuilder
    private let transport: Transport
    /// Seconds of a clock that is never set.
    private let now: @Sendable () -> Double
    private var cache = TokenCache()
    private var sharedRequests = SharedRequests()

    /// Creates a client of the worker at an address.
    ///
    /// - Parameters:
    ///   - baseURL: The address of the internal listener, such as `https://worker.internal.example.com:9443`. It must
    ///     be `https`, except on this machine.
    ///   - credential: The service's credential, as `refresh-worker services credential` printed it.
    ///   - transport: Sends the requests with your HTTP client.
    /// - Throws: ``TokenError/invalidConfiguration(message:)``.
    public init(baseURL: String, credential: String, transport: @escaping Transport) throws(TokenError) {
        try self.init(baseURL: baseURL, credential: credential, transport: transport, now: MonotonicClock.seconds)
    }

    /// Creates a client of the worker on this machine, which it calls over a unix socket.
    ///
    /// The process must be allowed to open the socket: on a packaged worker it must be in the group `refresh-worker`.
    ///
    /// - Parameters:
    ///   - path: The path of the socket.
    ///   - credential: The service's credential, as `refresh-worker services credential` printed it.
    /// - Throws: ``TokenError/invalidConfiguration(message:)``.
    public init(
        unixSocket path: String = "/run/refresh-worker/internal.sock",
        credential: String
    ) throws(TokenError) {
        let transport = try UnixSocketTransport(path: path)
        // The host is not looked up: the transport reads only the path and the query of the address.
        try self.init(baseURL: "http://localhost", credential: credential) { request in
            try await transport.send(request)
        }
    }

    /// Creates a client with another clock.
    package init(
        baseURL: String,
        credential: String,
        transport: @escaping Transport,
        now: @escaping @Sendable () -> Double
    ) throws(TokenError) {
        self.requests = try RequestBuilder(baseURL: baseURL, credential: credential)
        self.transport = transport
        self.now = now
    }

    /// Returns an access token that lives for at least `minimumLife` more seconds.
    ///
    /// If Google has answered a call with 401, name the token that it refused:
    ///
    ///     let newer = try await tokens.token(for: "alice", replacing: token)
    ///
    /// - Parameters:
    ///   - user: The user's id.
    ///   - connection: The id of one of the user's Google accounts, or nil for the connection `default`.
    ///   - scopes: The scopes that the token must have. A service whose entry limits its scopes must name some.
    ///   - minimumLife: The seconds that the token must have left, 0 to 3600. At most four fifths of a token's whole
    ///     life count at the worker, and a call that demands more asks it each time.
    ///   - refused: The token that Google answered with 401.
    /// - Returns: The token that is kept, or a new one.
    /// - Throws: A ``TokenError``, each of which says what to do.
    public func token(
        for user: String,
        connection: String? = nil,
        scopes: [String] = [],
        minimumLife: Int = WorkerTokens.defaultMinimumLife,
        replacing refused: Token? = nil
    ) async throws(TokenError) -> Token {
        let subject = TokenSubject(user: user, connection: connection, scopes: scopes)
        if let refused { cache.remove(refused, of: user) }
        if let token = cache.token(for: subject, minimumLife: minimumLife, at: now()) { return token }
        let demand = TokenDemand(subject: subject, minimumLife: minimumLife, refused: refused?.value)
        if let number = sharedRequests.number(serving: demand) { return try await result(of: number) }
        let request = try requests.request(for: demand)
        let number = sharedRequests.begin(demand)
        Task { await self.run(request, number: number) }
        return try await result(of: number)
    }

    /// Calls Google with a token, and once more with another token if Google refuses the first one.
    ///
    ///     let mail = try await tokens.withToken(for: "alice") { token in
    ///         let response = try await google.get(address, bearer: token.value)
    ///         guard response.status != 401 else { throw RefusedTokenError() }
    ///         return response.body
    ///     }
    ///
    /// - Parameters:
    ///   - user: The user's id.
    ///   - connection: The id of one of the user's Google accounts, or nil for the connection `default`.
    ///   - scopes: The scopes that the token must have.
    ///   - minimumLife: The seconds that the token must have left, 0 to 3600.
    ///   - call: Makes the call, and throws ``RefusedTokenError`` if the response is 401.
    /// - Returns: What the call returned.
    /// - Throws: A ``TokenError``, or the error of the call. ``RefusedTokenError`` means that Google refused a new token
    ///   too: the fault is not in the token.
    public func withToken<Result: Sendable>(
        for user: String,
        connection: String? = nil,
        scopes: [String] = [],
        minimumLife: Int = WorkerTokens.defaultMinimumLife,
        call: @Sendable (Token) async throws -> Result
    ) async throws -> Result {
        let first = try await token(for: user, connection: connection, scopes: scopes, minimumLife: minimumLife)
        do {
            return try await call(first)
        } catch is RefusedTokenError {
            let second = try await token(
                for: user,
                connection: connection,
                scopes: scopes,
                minimumLife: minimumLife,
                replacing: first
            )
            return try await call(second)
        }
    }

    /// Drops a user's tokens, so that the next call asks the worker.
    ///
    /// Call it for a notice that a connection was disconnected or lost scopes, or that the user was deleted. Otherwise
    /// the service might use a token until Google refuses it.
    public func forget(user: String) {
        cache.remove(user: user)
        // A response that is on its way might hold a token from before the notice.
        sharedRequests.detach(user: user)
    }

    /// Calls that wait for a response.
    package var waitingCalls: Int { sharedRequests.waitingCalls }

    /// Waits for a request that other callers might wait for too. A cancelled caller returns at once, and the request
    /// goes on.
    private func result(of number: Int) async throws(TokenError) -> Token {
        let waiter = sharedRequests.newWaiter()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: SharedRequests.Waiter) in
                guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                sharedRequests.add(continuation, as: waiter, to: number)
            }
        } onCancel: {
            Task { await self.cancel(waiter) }
        }
        return try result.get()
    }

    private func cancel(_ waiter: Int) {
        sharedRequests.remove(waiter)?.resume(returning: .failure(.cancelled))
    }

    private func run(_ request: Request, number: Int) async {
        // Counted from before the request, so that a token never seems to live longer than it does.
        let sentAt = now()
        let result: Result<Token, TokenError>
        do {
            result = TokenResponse.result(of: try await transport(request), sentAt: sentAt)
        } catch let error as TokenError {
            result = .failure(error)
        } catch {
            result = .failure(.unreachable(description: "\(error)"))
        }
        guard let finished = sharedRequests.finish(number) else { return }
        if case .success(let token) = result, finished.isCurrent {
            cache.store(token, for: finished.demand.subject, at: now())
        }
        for waiter in finished.waiters { waiter.resume(returning: result) }
    }
}
