private import Synchronization

/// A key ring that follows its file as long as the file still holds every key in memory.
///
/// A file that lacks a key is another ring or a truncated one: values sealed with the missing key could not be opened
/// any more. The caller checks the database and decides whether to ``adopt(_:)`` it.
package final class ReloadableKeyRing: Sendable {
    private struct State {
        var ring: KeyRing
        var missingKeys: Set<KeyID> = []
        var lostKeys: Set<KeyID> = []
        var rejection: String?
        var fileProblem: String?
        var standbyReason: String?
    }

    /// The ring's name for messages.
    package let name: String
    private let update: @Sendable () -> Void
    private let load: @Sendable () throws -> KeyRing
    private let state: Mutex<State>

    /// Loads the ring.
    ///
    /// Every ``reload()`` calls `load` again, which must not block for long. If reading the ring takes long, `update`
    /// does that and `load` returns the result.
    package init(
        name: String = "the key ring",
        update: @escaping @Sendable () -> Void = {},
        load: @escaping @Sendable () throws -> KeyRing
    ) throws {
        self.name = name
        self.update = update
        self.load = load
        state = Mutex(State(ring: try load()))
    }

    package var current: KeyRing { state.withLock { $0.ring } }

    /// Prepares a reload that must see the file as it is now, and blocks for as long as that takes.
    package func updateFromFile() { update() }

    /// Reads the file again, and adopts it if it holds every key in memory.
    ///
    /// Returns the ring if it was not adopted. If the file cannot be read, the ring stays unchanged and the error is
    /// thrown.
    @discardableResult
    package func reload() throws -> KeyRing? {
        let loaded = try load()
        return state.withLock { state in
            guard loaded.missingKeys(of: state.ring).isEmpty else { return loaded }
            state.ring = loaded
            return nil
        }
    }

    /// Replaces the ring, even by one that lacks keys of the current one.
    package func adopt(_ ring: KeyRing) { state.withLock { $0.ring = ring } }

    /// Opens a sealed secret.
    ///
    /// If the ring does not have the key, the file is read again.
    package func open(_ sealed: SealedSecret, for context: SealContext) throws(CryptoError) -> Secret {
        do {
            return try current.open(sealed, for: context)
        } catch {
            guard case .unknownKey = error, reloadSucceeds() else { throw error }
            return try current.open(sealed, for: context)
        }
    }

    /// Returns the binding key of this id.
    ///
    /// If the ring does not have it, the file is read again.
    package func bindingKey(_ id: KeyID) throws(CryptoError) -> BindingKey {
        do {
            return try current.bindingKey(id)
        } catch {
            guard reloadSucceeds() else { throw error }
            return try current.bindingKey(id)
        }
    }

    /// `true` if the file could be read.
    ///
    /// Otherwise the caller already has an error to report.
    private func reloadSucceeds() -> Bool {
        switch Result(catching: { try reload() }) {
        case .success: true
        case .failure: false
        }
    }
}

/// The state of this ring compared with those of other workers, for the code that refreshes and seals.
extension ReloadableKeyRing {
    /// Why the file is not adopted, or `nil` if it is.
    package var rejection: String? {
        get { state.withLock { $0.rejection } }
        set { state.withLock { $0.rejection = newValue } }
    }

    /// Why the file cannot be read, or `nil` if it can.
    ///
    /// The ring in memory stays in use, but a restart would fail.
    package var fileProblem: String? {
        get { state.withLock { $0.fileProblem } }
        set { state.withLock { $0.fileProblem = newValue } }
    }

    /// Why this process is in standby: its ring lacks a key with which other workers seal, or that stored tokens need.
    ///
    /// `nil` if the ring does not lack a key.
    package var standbyReason: String? {
        get { state.withLock { $0.standbyReason } }
        set { state.withLock { $0.standbyReason = newValue } }
    }

    /// `true` unless the ring lacks, or might lack, a key with which other workers seal, or that stored tokens need.
    package var isComplete: Bool { state.withLock { $0.standbyReason == nil && $0.missingKeys.isEmpty } }

    /// The keys that sealed values and bound tokens name and the ring lacks, until a comparison with the other workers'
    /// rings.
    package var missingKeys: Set<KeyID> { state.withLock { $0.missingKeys } }

    /// Records a key that the ring lacks.
    ///
    /// Returns `false` if the key is missing on every worker.
    package func reportMissing(_ id: KeyID) -> Bool {
        state.withLock { state in
            guard !state.lostKeys.contains(id) else { return false }
            state.missingKeys.insert(id)
            return true
        }
    }

    /// Clears the missing keys.
    ///
    /// `lost` are those that no worker has.
    package func resolveMissingKeys(lost: Set<KeyID>) {
        state.withLock { state in
            state.missingKeys = []
            state.lostKeys.formUnion(lost)
        }
    }
}
