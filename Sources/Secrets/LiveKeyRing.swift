private import Synchronization

/// A key ring that follows its file, as far as the file still holds every key in memory.
///
/// A file that lacks one is another ring, or one that was cut: values that the missing key sealed could no longer be opened.
/// Whoever can ask the database decides whether to ``adopt(_:)`` it.
package final class LiveKeyRing: Sendable {
    private struct State {
        var ring: KeyRing
        var doubts: Set<KeyID> = []
        var lost: Set<KeyID> = []
        var refusal: String?
        var standsBy: String?
    }

    /// The ring's name in a sentence.
    package let name: String
    private let load: @Sendable () throws -> KeyRing
    private let state: Mutex<State>

    /// Loads the ring; `load` is called again by every ``reload()``.
    package init(name: String = "the key ring", load: @escaping @Sendable () throws -> KeyRing) throws {
        self.name = name
        self.load = load
        state = Mutex(State(ring: try load()))
    }

    package var current: KeyRing { state.withLock { $0.ring } }

    /// Reads the file again, and adopts it if it holds every key in memory.
    ///
    /// Returns the ring that it has not adopted. When it cannot be read, the ring stays as it was and the error says why.
    @discardableResult
    package func reload() throws -> KeyRing? {
        let fresh = try load()
        return state.withLock { state in
            guard fresh.lacking(from: state.ring).isEmpty else { return fresh }
            state.ring = fresh
            return nil
        }
    }

    /// Takes a ring that lacks keys of the current one.
    package func adopt(_ ring: KeyRing) { state.withLock { $0.ring = ring } }

    /// Opens a sealed secret; a key that this ring does not know yet is looked for in the file.
    package func open(_ sealed: SealedSecret, for context: SealContext) throws(SealError) -> Secret {
        do {
            return try current.open(sealed, for: context)
        } catch {
            guard case .unknownKey = error, reloadSucceeds() else { throw error }
            return try current.open(sealed, for: context)
        }
    }

    /// `true` if the file could be read: when not, the caller has an error to report already.
    private func reloadSucceeds() -> Bool {
        switch Result(catching: { try reload() }) {
        case .success: true
        case .failure: false
        }
    }
}

/// The standing of the ring among those of other workers, for those who refresh and seal.
extension LiveKeyRing {
    /// The reason why the file is not adopted; `nil` while it is.
    package var refusal: String? {
        get { state.withLock { $0.refusal } }
        set { state.withLock { $0.refusal = newValue } }
    }

    /// The reason why this process refreshes nothing: its ring lacks a key with which others seal.
    ///
    /// `nil` if it lacks none.
    package var standsBy: String? {
        get { state.withLock { $0.standsBy } }
        set { state.withLock { $0.standsBy = newValue } }
    }

    /// `true` unless the ring lacks, or may lack, a key with which others seal.
    package var isComplete: Bool { state.withLock { $0.standsBy == nil && $0.doubts.isEmpty } }

    /// Keys that sealed values name, that the ring lacks, and of which it is not known whether others hold them.
    package var doubts: Set<KeyID> { state.withLock { $0.doubts } }

    /// Notes a key that the ring lacks.
    ///
    /// Returns `false` if it is known that no worker has it.
    package func doubt(_ id: KeyID) -> Bool {
        state.withLock { state in
            guard !state.lost.contains(id) else { return false }
            state.doubts.insert(id)
            return true
        }
    }

    /// Ends all doubts: `lost` are the keys that no worker has.
    package func settleDoubts(lost: Set<KeyID>) {
        state.withLock { state in
            state.doubts = []
            state.lost.formUnion(lost)
        }
    }
}
