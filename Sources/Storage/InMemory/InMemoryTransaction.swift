import Base

/// The transaction of ``InMemoryStore/transact(_:)``: it works on a copy of all stored data.
final class InMemoryTransaction: StoreTransaction {
    var state: InMemoryStore.State
    let leaseTime: LeaseTime
    /// The source of the nonces in notice ids; `nil` if notices are not kept.
    private let noticeNonces: (any RandomSource)?

    init(state: InMemoryStore.State, leaseTime: LeaseTime, noticeNonces: (any RandomSource)?) {
        self.state = state
        self.leaseTime = leaseTime
        self.noticeNonces = noticeNonces
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
        guard state.users[grant.userID]?.isDeleted != true else {
            throw StoreError(.conflict, "The user was deleted.")
        }
        state.grants[grant.id] = grant
        state.idOfUser[grant.userID] = grant.id
        if state.users[grant.userID] == nil {
            state.users[grant.userID] = User(id: grant.userID, createdAt: grant.createdAt)
        }
    }

    func update(_ grant: Grant) throws {
        guard let former = state.grants[grant.id], !former.forbids(grant) else {
            throw StoreError(.conflict, "There is no grant \(grant.id) to update, or its user was deleted.")
        }
        state.grants[grant.id] = grant
    }

    func record(_ event: GrantEvent) throws {
        guard let grant = state.grants[event.grant] else {
            throw StoreError(.conflict, "There is no grant \(event.grant) to record an event of.")
        }
        state.events[event.grant, default: []].append(event)
        state.trimEvents(of: event.grant)
        if let content = Notice.content(for: event) { notify(content, ofUser: grant.userID, at: event.at) }
    }

    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) {
        guard let noticeNonces else { return }
        let nonce = UInt32(truncatingIfNeeded: noticeNonces.nextBits())
        state.outbox.add(content, userID: userID, at: now, nonce: nonce)
    }

    func clientHealth(_ clientID: String) -> [UInt8]? { state.health[clientID] }

    func setClientHealth(_ health: [UInt8], of clientID: String) {
        state.health[clientID] = health
    }

    func takeUncountedSuccesses(of clientID: String) -> [UncountedSuccesses] {
        state.uncountedSuccesses.removeValue(forKey: clientID) ?? []
    }
}

extension InMemoryStore.State {
    fileprivate mutating func trimEvents(of id: GrantID) {
        guard let history = events[id], history.count > Retention.eventsPerGrant else { return }
        let surplus = history.dropLast(Retention.eventsPerGrant)
        let recent = history.suffix(Retention.eventsPerGrant)
        let needsConnection = !recent.contains { $0.kind == .connected }
        let connection = needsConnection ? surplus.last { $0.kind == .connected } : nil
        events[id] = [connection].compactMap(\.self) + recent
    }
}

extension Grant.Owner {
    /// `true` if both are one account at Google: compared by id if both have one, else by e-mail without regard to
    /// case.
    fileprivate func isSameAccount(as other: Self) -> Bool {
        if let googleUserID, let otherID = other.googleUserID { return googleUserID == otherID }
        guard let email, let otherEmail = other.email else { return false }
        return email.loweringASCII == otherEmail.loweringASCII
    }
}

extension String {
    /// The text with A to Z in lower case, as SQL's `lower` returns it.
    var loweringASCII: [UInt8] {
        utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
    }
}

extension InMemoryTransaction {
    func grants(ofGoogleUser googleUserID: String) -> [Grant] {
        state.grants.values
            .filter { $0.owner.googleUserID == googleUserID && $0.reason != .userDeleted }
            .sorted { $0.id < $1.id }
    }

    func issuedTokens(toAccount owner: Grant.Owner, at now: Timestamp) -> [IssuedTokens] {
        state.grants.values.filter { grant in
            if let until = grant.formerTokensUntil, until > now { return true }
            if let account = grant.owner.googleUserID { return account == owner.googleUserID }
            guard let email = grant.owner.email, let address = owner.email else { return false }
            return email.loweringASCII == address.loweringASCII
        }.map(\.issuedTokens)
    }

    func grants(withRefreshTokenMark mark: TokenMark) -> [Grant] {
        state.grants.values
            .filter { $0.refreshToken?.marks?.contains(mark) ?? false && $0.reason != .userDeleted }
            .sorted { $0.id < $1.id }
    }

    func lastConnection(of id: GrantID) -> Timestamp? {
        state.events[id]?.last { $0.kind == .connected }?.at
    }

    func user(_ id: String) -> User? { state.users[id] }

    func user(withGoogleUserID googleUserID: String) -> User? {
        state.users.values.first { $0.googleUserID == googleUserID }
    }

    func users(withEmail email: String) -> [User] {
        let wanted = email.loweringASCII
        return state.users.values.filter { $0.email?.loweringASCII == wanted }.sorted { $0.id < $1.id }
    }

    func insert(_ user: User) throws {
        guard state.users[user.id] == nil, isFree(user.googleUserID, for: user.id) else {
            throw StoreError(.conflict, "There is such a user already, or another has the same account at Google.")
        }
        state.users[user.id] = user
    }

    func update(_ user: User) throws {
        guard state.users[user.id] != nil, isFree(user.googleUserID, for: user.id) else {
            throw StoreError(.conflict, "There is no such user, or another has the same account at Google.")
        }
        state.users[user.id] = user
    }

    func move(user id: String, to other: String) {
        for session in state.sessions.values where session.userID == id { state.sessions[session.id]?.userID = other }
        if let grant = state.idOfUser.removeValue(forKey: id) {
            state.grants[grant]?.userID = other
            state.idOfUser[other] = grant
        }
        state.users[id] = nil
    }

    func session(_ id: SessionID) -> Session? { state.sessions[id] }

    func insert(_ session: Session) throws {
        guard state.sessions[session.id] == nil, state.users[session.userID] != nil else {
            throw StoreError(.conflict, "There is such a session already, or no such user.")
        }
        state.sessions[session.id] = session
    }

    func update(_ session: Session) throws {
        guard state.sessions[session.id] != nil else {
            throw StoreError(.conflict, "There is no \(session) to update.")
        }
        state.sessions[session.id] = session
    }

    func endSession(_ id: SessionID) {
        state.sessions[id] = nil
    }

    func endSessions(ofUser userID: String) -> Int {
        let ids = state.sessions.values.filter { $0.userID == userID }.map(\.id)
        for id in ids { state.sessions[id] = nil }
        return ids.count
    }

    func record(securityEvent identifier: String, at now: Timestamp) -> Bool {
        guard state.securityEvents[identifier] == nil else { return false }
        state.securityEvents[identifier] = now
        return true
    }

    func hasRecorded(securityEvent identifier: String) -> Bool { state.securityEvents[identifier] != nil }

    /// `true` if no other user has this account at Google.
    private func isFree(_ googleUserID: String?, for id: String) -> Bool {
        guard let googleUserID else { return true }
        return !state.users.values.contains { $0.googleUserID == googleUserID && $0.id != id }
    }
}

extension TokenMarks {
    fileprivate func contains(_ mark: TokenMark) -> Bool { prefix == mark || digest == mark }
}
