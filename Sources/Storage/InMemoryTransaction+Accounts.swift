import Base

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
