import AccountClient
import Synchronization

/// A process's view of a token store: after the process was killed, its calls no longer reach the store.
final class MortalTokenStore: TokenStore {
    struct Killed: Error {}

    private struct State {
        var isDead = false
        var writesLeft: Int?
    }

    private let wrapped: any TokenStore
    private let state = Mutex(State())

    /// Makes a view of a store; with `writes`, the process dies instead of making another write after that number.
    init(_ wrapped: any TokenStore, dyingAfter writes: Int? = nil) {
        self.wrapped = wrapped
        state.withLock { $0.writesLeft = writes }
    }

    var isDead: Bool { state.withLock { $0.isDead } }

    func kill() { state.withLock { $0.isDead = true } }

    func die(afterWrites writes: Int) { state.withLock { $0.writesLeft = writes } }

    func load(_ key: TokenKey) throws -> String? {
        guard !isDead else { throw Killed() }
        return try wrapped.load(key)
    }

    func save(_ token: String, for key: TokenKey) throws {
        try countWrite()
        try wrapped.save(token, for: key)
    }

    func remove(_ key: TokenKey) throws {
        try countWrite()
        try wrapped.remove(key)
    }

    func exclusively<Value>(_ body: () throws -> Value) throws -> Value { try wrapped.exclusively(body) }

    private func countWrite() throws {
        try state.withLock { state in
            if let left = state.writesLeft {
                if left == 0 { state.isDead = true }
                state.writesLeft = left - 1
            }
            if state.isDead { throw Killed() }
        }
    }
}
