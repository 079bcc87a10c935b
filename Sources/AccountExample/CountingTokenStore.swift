import AccountClient
import Foundation

/// Keeps the tokens in memory, and counts the saved pairs.
///
/// `count` is only used under `lock`, so the class is safe to share.
final class CountingTokenStore: TokenStore, @unchecked Sendable {
    private let tokens = InMemoryTokenStore()
    private let lock = NSLock()
    private var count = 0

    /// The number of saved pairs: one for the sign-in and one for each refresh.
    var pairsSaved: Int { lock.withLock { count } }

    func load(_ key: TokenKey) -> String? { tokens.load(key) }

    func save(_ token: String, for key: TokenKey) {
        tokens.save(token, for: key)
        if key == .refreshToken { lock.withLock { count += 1 } }
    }

    func remove(_ key: TokenKey) { tokens.remove(key) }

    /// Corrupts the signature of the stored access token and leaves its claims, so that only the server refuses it.
    func corruptAccessToken() throws {
        guard let token = tokens.load(.accessToken), let dot = token.lastIndex(of: ".") else {
            throw ExampleRun.UnexpectedResult(description: "no access token is stored")
        }
        let signature = token[token.index(after: dot)...]
        tokens.save(token[...dot] + String(signature.reversed()), for: .accessToken)
    }
}
