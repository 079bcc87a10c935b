import Foundation

/// The tokens in memory, in front of the app's store.
///
/// Rules that keep the session alive if the process is killed at any point, or another process shares the store:
///
/// - Only a refresh token that is in the store is sent. The server accepts a spent token until its successor is
///   presented, so the token in the store still works after a crash.
/// - A response replaces only the pair that was sent for it (compare-and-swap on the refresh token). If the store has
///   another pair, that one is newer, and the response is dropped. The order of `iat` does not show it: two tokens of
///   one second are equal, and a server's clock can step back.
/// - On a refresh the refresh token is saved first. Both tokens belong to one session, so either order is safe. On a
///   sign-in the former access token is removed first, because it belongs to another user. One item for both tokens
///   would sign out users whose tokens are stored under the two former names.
/// - No lock is held during a request, because an app that is suspended with a lock gets killed.
///
/// The server's side is docs/decisions/0083-rules-of-a-session-family.md. Tests run both together
/// (Tests/AccountClientTests/Simulation).
struct TokenCache: CustomReflectable {
    /// A pair that the server issued and that is not in the store yet.
    private struct Unsaved {
        let pair: TokenPair
        /// The refresh token that was sent for the pair.
        let sent: String
        let failure: AccountError
    }

    private let store: any TokenStore
    private var cached: TokenPair? {
        didSet { if cached != oldValue { user = cached?.user } }
    }
    /// The user of the pair in memory, which is read from it once.
    private(set) var user: AccountClient.CurrentUser?
    private var isRead = false
    private var unsavedPair: Unsaved?
    /// Why the pair in memory is what it is.
    private var cause = AccountClient.SessionChange.Cause.start

    /// Why the pair in memory is not in the store, or nil if it is.
    var unsaved: AccountError? { unsavedPair?.failure }

    /// Who is signed in, and why, or nil if the store could not be read yet.
    var change: AccountClient.SessionChange? {
        guard isRead else { return nil }
        let state: AccountClient.SessionState = cached == nil ? .signedOut : .signedIn
        return AccountClient.SessionChange(state: state, user: user, cause: cause)
    }

    init(_ store: any TokenStore) {
        self.store = store
    }

    /// Returns the pair for calls, read from the store the first time, or `nil` if no user is signed in.
    mutating func pair() throws(AccountError) -> TokenPair? {
        retrySaving()
        if !isRead { try read() }
        return cached
    }

    /// Returns the pair to refresh as it is in the store now: another process of the app might have refreshed since.
    mutating func pairForRefresh() throws(AccountError) -> TokenPair? {
        retrySaving()
        if let unsavedPair { throw unsavedPair.failure }
        try read()
        return cached
    }

    /// Saves the response to a refresh, if the store still has the pair that was sent for it.
    ///
    /// Returns `false` if the response was dropped: then the stored pair is used, or none after a log-out by another
    /// process. ``unsaved`` shows whether saving failed.
    mutating func replace(sent: TokenPair, with pair: TokenPair) -> Bool {
        replace(sent: sent.refreshToken, with: pair)
        return cached == pair
    }

    /// Saves the pair of a sign-in and replaces any stored one.
    mutating func signIn(_ pair: TokenPair) throws(AccountError) {
        unsavedPair = nil
        try exclusively(.save) { store in
            try store.remove(.accessToken)
            try store.save(pair)
        }
        cached = pair
        isRead = true
        cause = .signIn
    }

    /// Removes a pair that the server refused, if it is still the stored one, and returns `false` if another one is
    /// stored.
    mutating func remove(refused: TokenPair) throws(AccountError) -> Bool {
        let stored = try exclusively(.load) { try $0.load(.refreshToken) }
        guard stored == nil || stored == refused.refreshToken else {
            try read()
            return false
        }
        // If the store does not remove the pair, it is refused again after the next start, and removed then.
        _ = clear(onlyIf: refused.refreshToken, because: .sessionEnded)
        return true
    }

    /// Removes the pair from memory and from the store, and returns the store's error, if any.
    mutating func clear(because cause: AccountClient.SessionChange.Cause) -> AccountError? {
        clear(onlyIf: nil, because: cause)
    }

    private mutating func clear(
        onlyIf refused: String?,
        because cause: AccountClient.SessionChange.Cause
    ) -> AccountError? {
        cached = nil
        isRead = true
        self.cause = cause
        unsavedPair = nil
        do {
            try exclusively(.remove) { store in
                if let refused, try store.load(.refreshToken) != refused { return }
                // Try both: a store that fails to remove one might remove the other.
                let first = Result { try store.remove(.refreshToken) }
                try store.remove(.accessToken)
                try first.get()
            }
            return nil
        } catch {
            return error
        }
    }

    private mutating func read() throws(AccountError) {
        let stored = try exclusively(.load) { try $0.pair() }
        if isRead, stored != cached { cause = .otherProcess }
        cached = stored
        isRead = true
    }

    private mutating func retrySaving() {
        guard let unsavedPair else { return }
        replace(sent: unsavedPair.sent, with: unsavedPair.pair)
    }

    private mutating func replace(sent: String, with pair: TokenPair) {
        do {
            let stored = try exclusively(.save) { (store) -> TokenPair? in
                // The successor is already stored after an incomplete save, or if another process got the same
                // response.
                guard let stored = try store.load(.refreshToken), stored == sent || stored == pair.refreshToken else {
                    return try store.pair()
                }
                try store.save(pair)
                return pair
            }
            cause = stored == pair ? .refresh : .otherProcess
            cached = stored
            unsavedPair = nil
        } catch {
            cause = .refresh
            cached = pair
            unsavedPair = Unsaved(pair: pair, sent: sent, failure: error)
        }
        isRead = true
    }

    /// Runs the body exclusively among processes. Its errors become those of the action.
    private func exclusively<Value>(
        _ action: AccountError.StoreAction,
        _ body: (any TokenStore) throws -> Value
    ) throws(AccountError) -> Value {
        do {
            return try store.exclusively { try body(store) }
        } catch {
            throw .tokenStore(action, failedWith: error)
        }
    }

    var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TokenStore {
    fileprivate func pair() throws -> TokenPair? {
        guard let refreshToken = try load(.refreshToken) else { return nil }
        return TokenPair(accessToken: try load(.accessToken), refreshToken: refreshToken)
    }

    /// Saves the refresh token first: with it alone the user stays signed in, with the access token alone they do not.
    fileprivate func save(_ pair: TokenPair) throws {
        try save(pair.refreshToken, for: .refreshToken)
        if let accessToken = pair.accessToken {
            try save(accessToken, for: .accessToken)
        } else {
            try remove(.accessToken)
        }
    }
}

/// The app's two tokens, which are never printed.
struct TokenPair: Equatable, Sendable {
    /// Nil if only the refresh token had been stored when the process ended. The first call then refreshes.
    let accessToken: String?
    let refreshToken: String
}

extension TokenPair: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "TokenPair" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The readable content of an access token.
extension TokenPair {
    private struct Expiry: Decodable {
        let exp: Double
    }

    private struct Subject: Decodable {
        enum CodingKeys: String, CodingKey {
            case sub
            case userID = "user_id"
        }

        let sub: String?
        let userID: String?
    }

    private struct Address: Decodable {
        let email: String?
    }

    private struct Session: Decodable {
        let sid: String?
    }

    /// Returns the expiry in the token, or nil if it cannot be read. The signature is not checked: only the server has
    /// the key, and the expiry only decides when to refresh.
    static func expiry(of token: String) -> Date? {
        claims(Expiry.self, of: token).map { Date(timeIntervalSince1970: $0.exp) }
    }

    /// Returns `true` if two access tokens name different users and do not name the same session. A token that cannot
    /// be read counts as the same user's.
    static func isOfAnotherUser(_ token: String?, than former: String?) -> Bool {
        guard let token, let former, let user = user(of: token), let formerUser = self.user(of: former) else {
            return false
        }
        guard user != formerUser else { return false }
        guard let session = session(of: token) else { return true }
        return session != self.session(of: former)
    }

    /// Returns the session that the token names, or nil if it names none.
    private static func session(of token: String) -> String? { claims(Session.self, of: token)?.sid }

    /// Returns the user whom the token names, or nil if it cannot be read.
    static func user(of token: String) -> String? {
        claims(Subject.self, of: token).flatMap { $0.sub ?? $0.userID }
    }

    /// Returns the address that the token names, or nil if it names none.
    static func email(of token: String) -> String? {
        guard let email = claims(Address.self, of: token)?.email, !email.isEmpty else { return nil }
        return email
    }

    private static func claims<Claims: Decodable>(_ type: Claims.Type, of token: String) -> Claims? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var payload = parts[1].replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        payload += String(repeating: "=", count: (4 - payload.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: payload) else { return nil }
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            // A token without a readable expiry is used until the server refuses it.
            return nil
        }
    }
}
