import AccountClient

/// A token store that signals the end of its client, and with it the end of the client's work.
private final class LifetimeStore: TokenStore {
    private let wrapped: any TokenStore
    private let continuation: AsyncStream<Never>.Continuation

    init(_ wrapped: any TokenStore, _ continuation: AsyncStream<Never>.Continuation) {
        self.wrapped = wrapped
        self.continuation = continuation
    }

    deinit { continuation.finish() }

    func load(_ key: TokenKey) throws -> String? { try wrapped.load(key) }
    func save(_ token: String, for key: TokenKey) throws { try wrapped.save(token, for: key) }
    func remove(_ key: TokenKey) throws { try wrapped.remove(key) }
}

extension Backend {
    /// Runs the body with a client, and returns once the client has processed every response that it waited for.
    func withClient(_ store: any TokenStore, _ body: (AccountClient) async throws -> Void) async throws {
        let (end, continuation) = AsyncStream.makeStream(of: Never.self)
        try await run(with: try client(LifetimeStore(store, continuation)), body)
        for await _ in end {}
    }

    private func run(with client: consuming AccountClient, _ body: (AccountClient) async throws -> Void) async throws {
        try await body(client)
    }
}
