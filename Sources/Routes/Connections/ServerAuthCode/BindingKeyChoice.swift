internal import Crypto
internal import Storage

/// Which key of the ring the refresh token of a code is bound to.
///
/// The token stays bound to it, and any worker might have to refresh it. So the key must be held by every live worker.
/// Example: a key was just added, A has read it and B has not. A binds to the key that was added before.
enum BindingKeyChoice: Equatable {
    case key(KeyID)
    /// The ring has keys to bind to, but each is lacked by some worker. These lack the one that was added last.
    case unshared(newest: KeyID, lackedBy: [String])
    /// The ring has no key to bind to.
    case missing

    init(from ring: KeyRing, for workers: [WorkerReport]) {
        let candidates = ring.bindingKeys.map(\.id)
        guard let newest = candidates.first else {
            self = .missing
            return
        }
        let shared = candidates.first { id in workers.allSatisfy { $0.keyIDs.contains(id) } }
        if let shared {
            self = .key(shared)
        } else {
            self = .unshared(newest: newest, lackedBy: workers.filter { !$0.keyIDs.contains(newest) }.map(\.id))
        }
    }
}
