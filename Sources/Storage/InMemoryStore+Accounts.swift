package import Base

extension InMemoryStore {
    package func user(_ id: String) async throws -> User? {
        try withOpenState { $0.users[id] }
    }

    package func users(after id: String?, atMost count: Int) async throws -> [User] {
        try withOpenState { state in
            let following = state.users.values.filter { user in
                id.map { $0.utf8.lexicographicallyPrecedes(user.id.utf8) } ?? true
            }
            let sorted = following.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
            return Array(sorted.prefix(max(0, count)))
        }
    }

    package func session(_ id: SessionID) async throws -> Session? {
        try withOpenState { $0.sessions[id] }
    }

    package func removeExpired(at now: Timestamp) async throws -> RemovedCounts {
        try withOpenState { $0.removeExpired(at: now) }
    }
}

extension InMemoryStore.State {
    fileprivate mutating func removeExpired(at now: Timestamp) -> RemovedCounts {
        var count = RemovedCounts()
        for (id, session) in sessions where !session.isLive(at: now) && count.sessions < RemovedCounts.limit {
            sessions[id] = nil
            count.sessions += 1
        }
        for id in Array(sessions.keys) where count.successors < RemovedCounts.limit {
            if sessions[id]?.wipeSuccessor(at: now) == true { count.successors += 1 }
        }
        for (identifier, at) in securityEvents where at < now - Retention.securityEvents {
            guard count.securityEvents < RemovedCounts.limit else { break }
            securityEvents[identifier] = nil
            count.securityEvents += 1
        }
        count.notices = outbox.remove(finishedBefore: now - Retention.notices, atMost: RemovedCounts.limit)
        for (id, user) in users where user.deletedUntil.map({ $0 <= now }) ?? false {
            guard count.users < RemovedCounts.limit else { break }
            let grant = grant(ofUser: id)
            guard grant?.revocationAskedAt == nil else { continue }
            if let grant {
                grants[grant.id] = nil
                events[grant.id] = nil
                idOfUser[id] = nil
            }
            sessions = sessions.filter { $0.value.userID != id }
            users[id] = nil
            count.users += 1
        }
        return count
    }
}
