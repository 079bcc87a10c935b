private import Foundation

/// A token store that lasts as long as the process, for tests, previews and programs that sign in each time.
///
/// `tokens` is only touched under `lock`, which is what makes the class safe to share; `Mutex` would do it without a word,
/// but asks for iOS 18.
public final class InMemoryTokenStore: TokenStore, CustomReflectable, @unchecked Sendable {
    private let lock = NSLock()
    private var tokens: [TokenKey: String] = [:]

    /// Makes an empty store.
    public init() {}

    /// The token kept under a name, or nil where there is none.
    public func load(_ key: TokenKey) -> String? { lock.withLock { tokens[key] } }

    /// Keeps a token under a name, in the place of an earlier one.
    public func save(_ token: String, for key: TokenKey) { lock.withLock { tokens[key] = token } }

    /// Forgets the token under a name.
    public func remove(_ key: TokenKey) { lock.withLock { tokens[key] = nil } }

    /// Shows nothing, so that `dump` prints no token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
