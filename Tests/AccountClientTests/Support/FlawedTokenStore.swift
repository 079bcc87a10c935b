import AccountClient
import Foundation
import Synchronization

/// A token store that fails as set by a test, and otherwise keeps the tokens.
final class FlawedTokenStore: TokenStore {
    enum Action: Hashable { case load, save(TokenKey), remove }

    private struct State {
        var failing: Set<Action> = []
        var tokens: [TokenKey: String] = [:]
    }

    private let state = Mutex(State())

    var tokens: [TokenKey: String] { state.withLock { $0.tokens } }

    func fail(at actions: Set<Action>) { state.withLock { $0.failing = actions } }

    func load(_ key: TokenKey) throws -> String? { try run(.load) { $0[key] } }
    func save(_ token: String, for key: TokenKey) throws { try run(.save(key)) { $0[key] = token } }
    func remove(_ key: TokenKey) throws { try run(.remove) { $0[key] = nil } }

    private func run<Value: Sendable>(_ action: Action, _ body: (inout [TokenKey: String]) -> Value) throws -> Value {
        try state.withLock { state in
            // errSecInteractionNotAllowed, the Keychain's error while the device is locked.
            guard !state.failing.contains(action) else { throw NSError(domain: "Keychain", code: -25308) }
            return body(&state.tokens)
        }
    }
}
