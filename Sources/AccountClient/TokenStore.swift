private import Foundation

/// The names under which the app's tokens are stored.
public enum TokenKey: String, CaseIterable, Sendable {
    /// The access token, which is sent with each call and lives half an hour.
    case accessToken = "ce.access_token"
    /// The refresh token, which gets the next pair and is spent by that.
    case refreshToken = "ce.refresh_token"
}

/// The place where the app stores its tokens: `KeychainTokenStore` on Apple systems, ``InMemoryTokenStore`` in tests.
///
/// A store must guarantee:
///
/// - Each call is atomic. A process that is killed during ``save(_:for:)`` leaves the former token or the new one,
///   never a part of one and never none.
/// - A call that returned is durable: the next start of the app finds its result.
/// - A call that throws might have taken effect or not. ``AccountClient`` reads the store again before it relies on
///   either.
///
/// The two tokens do not have to be stored together. ``AccountClient`` orders its calls so that a process that is
/// killed between any two of them restarts with a working session.
///
/// Processes that share a store, such as an app and its extension, need ``exclusively(_:)`` too.
///
/// The calls are synchronous, so that ``AccountClient`` decides and stores in one uninterrupted step. They are made one
/// at a time, in the order of the client's decisions.
public protocol TokenStore: Sendable {
    /// Returns the token stored under a name, or nil if there is none.
    func load(_ key: TokenKey) throws -> String?
    /// Stores a token under a name and replaces an earlier one.
    func save(_ token: String, for key: TokenKey) throws
    /// Removes the token under a name. A missing token is not an error.
    func remove(_ key: TokenKey) throws
    /// Runs the body while no other process that shares the store runs one.
    ///
    /// ``AccountClient`` compares the stored tokens and replaces them within one body, so that a process that was
    /// suspended with an old response cannot overwrite tokens that another process has stored since. The body makes a
    /// few calls to the store and never waits for the network. The default runs the body directly, which is right for
    /// one process.
    func exclusively<Value>(_ body: () throws -> Value) throws -> Value
}

extension TokenStore {
    /// Runs the body: a store that only one process uses does not need a lock.
    public func exclusively<Value>(_ body: () throws -> Value) throws -> Value { try body() }
}

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
