import Clocks

/// What a body of ``InMemoryStore/transact(_:)`` works with: a copy of all that is stored.
final class InMemoryTransaction: StoreTransaction {
    private(set) var state: InMemoryStore.State
    let leaseTime: LeaseTime

    init(state: InMemoryStore.State, leaseTime: LeaseTime) {
        self.state = state
        self.leaseTime = leaseTime
    }

    func grant(_ id: GrantID) -> Grant? { state.grants[id] }

    func grant(ofUser userID: String) -> Grant? { state.grant(ofUser: userID) }

    func grants(sharingAccountWith grant: Grant) -> [Grant] {
        state.grants.values
            .filter { $0.id != grant.id && $0.refreshToken != nil && $0.owner.isSameAccount(as: grant.owner) }
            .sorted { $0.id < $1.id }
    }

    func insert(_ grant: Grant) throws {
        guard state.grants[grant.id] == nil, state.idOfUser[grant.userID] == nil else {
            throw StoreError(.conflict, "The user has a grant already, or the grant's id is taken.")
        }
        state.grants[grant.id] = grant
        state.idOfUser[grant.userID] = grant.id
    }

    func update(_ grant: Grant) throws {
        guard state.grants[grant.id] != nil else {
            throw StoreError(.conflict, "There is no grant \(grant.id) to update.")
        }
        state.grants[grant.id] = grant
    }

    func record(_ event: GrantEvent) throws {
        guard state.grants[event.grant] != nil else {
            throw StoreError(.conflict, "There is no grant \(event.grant) to record an event of.")
        }
        state.events[event.grant, default: []].append(event)
    }

    func hastenRetries(ofClient clientID: String, dueBy: Timestamp) {
        for (id, grant) in state.grants where grant.clientID == clientID && grant.mayBeHastened {
            guard let dueAt = grant.dueAt, dueAt > dueBy else { continue }
            state.grants[id]?.reschedule(to: dueBy)
        }
    }

    func clientHealth(_ clientID: String) -> [UInt8]? { state.health[clientID] }

    func setClientHealth(_ health: [UInt8], of clientID: String) {
        state.health[clientID] = health
    }
}

extension Grant.Owner {
    /// Whether both are one account at Google: by its id where both tell it, else by e-mail without regard to case.
    fileprivate func isSameAccount(as other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID == otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.loweringASCII == otherEmail.loweringASCII
    }
}

extension String {
    /// The text with A to Z lowered, as SQL's `lower` does.
    fileprivate var loweringASCII: [UInt8] {
        utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
    }
}
