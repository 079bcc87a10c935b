private import Foundation

/// A token store that lasts as long as the process, for tests, previews and programs that sign in each time.
///
/// `tokens` is only used under `lock`, so the class is safe to share. `Mutex` would not need `@unchecked`, but it
/// requires iOS 18.
public final class InMemoryTokenStore: TokenStore, CustomReflectable, @unchecked Sendable {
    private let lock = NSLock()
    private var tokens: [TokenKey: String] = [:]

    /// Creates an empty store.
    public init() {}

    /// Returns the token stored under a name, or nil if there is none.
    public func load(_ key: TokenKey) -> String? { lock.withLock { tokens[key] } }

    /// Stores a token under a name and replaces an earlier one.
    public func save(_ token: String, for key: TokenKey) { lock.withLock { tokens[key] = token } }

    /// Removes the token under a name.
    public func remove(_ key: TokenKey) { lock.withLock { tokens[key] = nil } }

    /// An empty mirror, so that `dump` does not print a token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
