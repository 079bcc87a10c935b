private import Synchronization

/// A key ring that follows its file: a key that was added while the program runs is found when it is first needed.
package final class LiveKeyRing: Sendable {
    private let load: @Sendable () throws -> KeyRing
    private let ring: Mutex<KeyRing>

    /// Loads the ring; `load` is called again by every ``reload()``.
    package init(load: @escaping @Sendable () throws -> KeyRing) throws {
        self.load = load
        ring = Mutex(try load())
    }

    package var current: KeyRing { ring.withLock { $0 } }

    /// Reads the file again.
    ///
    /// When it cannot be read, the ring stays as it was and the error says why.
    package func reload() throws {
        let fresh = try load()
        ring.withLock { $0 = fresh }
    }

    /// Opens a sealed secret; a key that this ring does not know yet is looked for in the file.
    package func open(_ sealed: SealedSecret, for context: SealContext) throws(SealError) -> Secret {
        do {
            return try current.open(sealed, for: context)
        } catch {
            guard case .unknownKey = error, reloadSucceeds() else { throw error }
            return try current.open(sealed, for: context)
        }
    }

    /// Whether the file could be read: when not, the caller has an error to report already.
    private func reloadSucceeds() -> Bool {
        switch Result(catching: { try reload() }) {
        case .success: true
        case .failure: false
        }
    }
}
