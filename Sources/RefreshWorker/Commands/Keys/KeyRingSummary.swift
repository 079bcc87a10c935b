import Base
import Crypto

/// The keys of a ring by id and role, without their material: enough for every decision about them.
struct KeyRingSummary: Equatable, Sendable {
    enum Role: String, Sendable {
        case seals
        case opens
        /// Opens tokens as well, but does not seal until every worker holds it.
        case pending
        /// Neither seals nor binds. A sealing key can be removed after a day, a binding key never.
        case retired
        /// The refresh tokens of new codes are bound to it, as soon as every worker holds it.
        case binds
        /// Signs for the tokens that are bound to it. Those of new codes are bound to another key.
        case bound
    }

    struct Entry: Equatable, Sendable {
        /// How long a retired sealing key stays in the file.
        static let retirement: Duration = .seconds(86_400)

        let id: KeyID
        let role: Role
        var retiredAt: Timestamp?
        /// `true` for a key that refresh tokens are bound to.
        var isBinding = false

        /// The time from which a retired key can leave the file: results that it sealed have been stored or lost by
        /// then.
        ///
        /// `nil` for a binding key, which stays for good: a worker that has not read the ring since could still bind a
        /// token to it, and no other key helps then.
        var removableAt: Timestamp? {
            guard let retiredAt, !isBinding else { return nil }
            return retiredAt + Self.retirement
        }
    }

    /// The keys in the order of the ring's file.
    let entries: [Entry]
    let sealingKeyID: KeyID

    func role(of id: KeyID) -> Role? { entries.first { $0.id == id }?.role }

    /// Retired keys that can leave the file.
    func expired(at now: Timestamp) -> [KeyID] {
        entries.filter { entry in
            guard let removableAt = entry.removableAt else { return false }
            return removableAt <= now
        }
        .map(\.id)
    }

    func removableAt(_ id: KeyID) -> Timestamp? { entries.first { $0.id == id }?.removableAt }

    /// The key that the next rotation activates.
    var firstPending: KeyID? { entries.first { $0.role == .pending }?.id }

    func isBinding(_ id: KeyID) -> Bool { entries.contains { $0.id == id && $0.isBinding } }

    /// Keys that stored tokens need but that are missing in the ring: those tokens cannot be used.
    func missingKeys(of keysInUse: [KeyID: Int]) -> [KeyID] {
        keysInUse.keys.filter { role(of: $0) == nil }.sorted()
    }
}

extension KeyRingSummary {
    init(_ ring: KeyRing) {
        let entries = ring.keys.map { key in
            switch key.role {
            case .active where key.isBinding:
                Entry(id: key.id, role: key.id == ring.bindingKey?.id ? .binds : .bound, isBinding: true)
            case .active: Entry(id: key.id, role: key.id == ring.sealingKeyID ? .seals : .opens)
            case .pending: Entry(id: key.id, role: .pending)
            case .retired(let since):
                Entry(id: key.id, role: .retired, retiredAt: since, isBinding: key.isBinding)
            }
        }
        self.init(entries: entries, sealingKeyID: ring.sealingKeyID)
    }
}
