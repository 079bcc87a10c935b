import AccountClient

/// A token store that signals the end of its client, and with it the end of the client's work.
private final class LifetimeStore: TokenStore {
    private let kept: any TokenStore
    private let gone: AsyncStream<Never>.Continuation

    init(_ kept: any TokenStore, _ gone: AsyncStream<Never>.Continuation) {
        self.kept = kept
        self.gone = gone
    }

    deinit { gone.finish() }

    func load(_ key: TokenKey) throws -> String? { try kept.load(key) }
    func save(_ token: String, for key: TokenKey) throws { try kept.save(token, for: key) }
    func remove(_ key: TokenKey) throws { try kept.remove(key) }
}

extension Backend {
    /// Lends a client, and returns when every answer that it still waited for has been processed.
    func withClient(_ store: any TokenStore, _ body: (AccountClient) async throws -> Void) async throws {
        let (end, gone) = AsyncStream.makeStream(of: Never.self)
        try await lend(try client(LifetimeStore(store, gone)), body)
        for await _ in end {}
    }

    private func lend(_ client: consuming AccountClient, _ body: (AccountClient) async throws -> Void) async throws {
        try await body(client)
    }
}
