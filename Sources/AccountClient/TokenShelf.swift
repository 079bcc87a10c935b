import Foundation

/// The tokens as the client holds them and as the app's store keeps them.
///
/// A refresh token is spent when the server answers, so its successor is held even where it cannot be saved; saving is
/// tried again at each use, and no further refresh is made before it has worked.
struct TokenShelf: CustomReflectable {
    private let store: any TokenStore
    private var held: TokenPair?
    private var isRead = false
    /// Why the held pair is not in the store; nil when it is.
    private(set) var unsaved: AccountError?

    init(_ store: any TokenStore) {
        self.store = store
    }

    /// The pair to call with, read from the store the first time; nil when nobody is signed in.
    mutating func pair() throws(AccountError) -> TokenPair? {
        if unsaved != nil { save() }
        if !isRead {
            held = try load()
            isRead = true
        }
        return held
    }

    /// The pair to refresh, as the store has it now: another process of the app may have refreshed meanwhile.
    mutating func pairForRefresh() throws(AccountError) -> TokenPair? {
        guard unsaved != nil else {
            held = try load()
            isRead = true
            return held
        }
        save()
        if let unsaved { throw unsaved }
        return held
    }

    /// Holds a pair and saves it; ``unsaved`` tells whether that worked.
    mutating func put(_ pair: TokenPair) {
        held = pair
        isRead = true
        save()
    }

    /// Forgets the pair here and in the store; returns what kept the store from it.
    mutating func clear() -> AccountError? {
        held = nil
        isRead = true
        unsaved = nil
        var failure: AccountError?
        for key in [TokenKey.refreshToken, .accessToken] {
            do {
                try store.remove(key)
            } catch {
                failure = .tokenStore(.remove, error)
            }
        }
        return failure
    }

    private func load() throws(AccountError) -> TokenPair? {
        do {
            guard let refreshToken = try store.load(.refreshToken) else { return nil }
            return TokenPair(accessToken: try store.load(.accessToken), refreshToken: refreshToken)
        } catch {
            throw .tokenStore(.load, error)
        }
    }

    /// The refresh token goes first: with it alone the user stays signed in, with the access token alone they do not.
    private mutating func save() {
        guard let held else { return }
        do {
            try store.save(held.refreshToken, for: .refreshToken)
            if let accessToken = held.accessToken {
                try store.save(accessToken, for: .accessToken)
            } else {
                try store.remove(.accessToken)
            }
            unsaved = nil
        } catch {
            unsaved = .tokenStore(.save, error)
        }
    }

    var customMirror: Mirror { Mirror(self, children: [:]) }
}
