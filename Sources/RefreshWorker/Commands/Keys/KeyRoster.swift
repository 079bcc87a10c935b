import Secrets

/// The keys of a ring by name alone: enough for every decision about them.
struct KeyRoster: Equatable, Sendable {
    enum Role: String, Sendable {
        case seals
        case opens
        /// Opens as well, but waits until every worker holds it.
        case pending
    }

    struct Entry: Equatable, Sendable {
        let id: KeyID
        let role: Role
    }

    /// In the order of the ring's file.
    let entries: [Entry]
    let sealingKeyID: KeyID

    init(_ ring: KeyRing) {
        entries = ring.keys.map { key in
            let role: Role =
                if key.isPending { .pending } else if key.id == ring.sealingKeyID { .seals } else { .opens }
            return Entry(id: key.id, role: role)
        }
        sealingKeyID = ring.sealingKeyID
    }

    init(sealing: KeyID, opening: [KeyID] = [], pending: [KeyID] = []) {
        entries =
            [Entry(id: sealing, role: .seals)]
            + opening.map { Entry(id: $0, role: .opens) } + pending.map { Entry(id: $0, role: .pending) }
        sealingKeyID = sealing
    }

    func role(of id: KeyID) -> Role? { entries.first { $0.id == id }?.role }

    /// The key that a rotation puts to use next.
    var firstPending: KeyID? { entries.first { $0.role == .pending }?.id }

    /// Keys with which stored tokens are sealed although the ring lacks them: those tokens cannot be opened.
    func lacking(of keysInUse: [KeyID: Int]) -> [KeyID] {
        keysInUse.keys.filter { role(of: $0) == nil }.sorted()
    }
}
