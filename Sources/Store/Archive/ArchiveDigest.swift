private import Clocks
private import Secrets

/// A checksum over records that does not depend on their store, or on the page size with which they were read.
package struct ArchiveDigest: Hashable, Sendable, CustomStringConvertible {
    package private(set) var count = 0
    private var hash = [UInt8](repeating: 0, count: 32)

    package init() {}

    /// Adds a record: the new checksum is the SHA-256 of the former one and the record.
    package mutating func add(_ record: ArchiveRecord) {
        var bytes = CanonicalBytes(hash)
        bytes.add(record)
        hash = Digest.sha256(bytes.bytes)
        count += 1
    }

    /// Sixty-four lower-case hexadecimal digits.
    package var description: String { Hexadecimal.encode(hash) }
}

/// An unambiguous encoding: two different rows of fields never give the same bytes.
private struct CanonicalBytes {
    private(set) var bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func add(_ record: ArchiveRecord) {
        add(record.kind.rawValue)
        switch record {
        case .user(let user): add(user)
        case .grant(let grant): add(grant)
        case .event(let sequence, let event):
            add(sequence)
            add(event)
        case .session(let session): add(session)
        case .clientHealth(let clientID, let health):
            add(clientID)
            add(health)
        case .securityEvent(let identifier, let at):
            add(identifier)
            add(at)
        case .notice(let notice): add(notice)
        }
    }

    private mutating func add(_ user: User) {
        add(user.id)
        add(user.createdAt)
        add(user.email)
        add(user.emailIsVerified)
        add(user.name)
        add(user.picture)
        add(user.googleUserID)
        add(user.lastLoginAt)
        add(user.isActive)
        add(user.deletedUntil)
    }

    private mutating func add(_ grant: Grant) {
        add(grant.id.rawValue)
        add(grant.userID)
        add(grant.createdAt)
        add(grant.clientID)
        add(grant.owner.googleUserID)
        add(grant.owner.email)
        add(grant.owner.name)
        add(grant.owner.emailIsVerified)
        add(grant.scope)
        add(grant.state.rawValue)
        add(grant.reason.rawValue)
        add(grant.since)
        add(grant.generation)
        add(grant.refreshToken?.sealed.bytes)
        add(grant.refreshToken?.marks?.prefix.bytes)
        add(grant.refreshToken?.marks?.digest.bytes)
        add(grant.refreshToken?.expiresAt)
        add(grant.accessToken?.sealed.bytes)
        add(grant.accessToken?.obtainedAt)
        add(grant.accessToken?.expiresAt)
        add(grant.accessToken?.type)
        add(grant.dueAt)
        add(Int64(grant.attempts))
        add(grant.failingSince)
        add(grant.lastSuccessAt)
        add(grant.lastAttemptAt)
        add(grant.isProven)
        add(grant.revocationAskedAt)
        add(grant.suspectedSince)
        add(Int64(grant.quickRefreshes))
        add(grant.answerLostAt)
        add(grant.rotationClaims.bytes)
        add(grant.issuedTokens.bytes)
        add(grant.formerTokensUntil)
    }

    private mutating func add(_ event: GrantEvent) {
        add(event.grant.rawValue)
        add(event.at)
        add(event.kind.rawValue)
        add(event.from?.rawValue)
        add(event.to.rawValue)
        add(event.reason.rawValue)
        add(event.generation)
    }

    private mutating func add(_ session: Session) {
        add(session.id.bytes)
        add(session.userID)
        add(session.createdAt)
        add(session.expiresAt)
        add(session.family.currentHash)
        add(session.family.historyBytes)
        add(session.successor?.bytes)
        add(session.successorUntil)
    }

    private mutating func add(_ archived: ArchivedNotice) {
        let notice = archived.notice
        add(notice.sequence)
        add(Int64(notice.nonce))
        add(notice.userID)
        add(notice.at)
        let columns = Notice.Columns(notice.content)
        add(columns.kind)
        add(columns.grant)
        add(columns.from)
        add(columns.to)
        add(columns.reason)
        add(columns.lost)
        add(columns.granted)
        add(columns.session)
        add(notice.pendingSince)
        add(Int64(notice.attempts))
        add(archived.nextTryAt)
        add(archived.acceptedAt)
        add(archived.givenUpAt)
    }

    // MARK: Fields

    private mutating func add(_ value: [UInt8]?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        add(length: value.count)
        bytes += value
    }

    private mutating func add(_ value: String?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        add(length: value.utf8.count)
        bytes += value.utf8
    }

    private mutating func add(_ value: Int64?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        for shift in stride(from: Int64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    private mutating func add(_ value: Timestamp?) { add(value?.milliseconds) }

    private mutating func add(_ value: Bool?) { add(value.map { $0 ? 1 : 0 as Int64 }) }

    private mutating func add(length: Int) { add(Int64(length)) }
}
