private import Base
private import Crypto

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
private struct CanonicalBytes: ColumnWriter {
    private(set) var bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func add(_ record: ArchiveRecord) {
        write(record.kind.rawValue)
        switch record {
        case .user(let user): add(user)
        case .grant(let grant): add(grant)
        case .event(let sequence, let event):
            write(sequence)
            add(event)
        case .session(let session): add(session)
        case .clientHealth(let clientID, let health):
            write(clientID)
            write(health)
        case .securityEvent(let identifier, let at):
            write(identifier)
            write(at)
        case .notice(let notice): add(notice)
        }
    }

    private mutating func add(_ user: User) {
        write(user.id)
        write(user.createdAt)
        write(user.email)
        write(user.emailIsVerified)
        write(user.name)
        write(user.picture)
        write(user.googleUserID)
        write(user.lastLoginAt)
        write(user.isActive)
        write(user.isFromSignIn)
        write(user.deletedUntil)
        write(user.tokensUntil)
    }

    private mutating func add(_ grant: Grant) {
        for column in GrantColumn.read { column.write(grant, to: &self) }
    }

    private mutating func add(_ event: GrantEvent) {
        write(event.grant.rawValue)
        write(event.at)
        write(event.kind.rawValue)
        write(event.from?.rawValue)
        write(event.to.rawValue)
        write(event.reason.rawValue)
        write(event.generation)
    }

    private mutating func add(_ session: Session) {
        write(session.id.bytes)
        write(session.userID)
        write(session.createdAt)
        write(session.expiresAt)
        write(session.family.currentHash)
        write(session.family.historyBytes)
        write(session.successor?.bytes)
        write(session.successorUntil)
    }

    private mutating func add(_ archived: ArchivedNotice) {
        let notice = archived.notice
        write(notice.sequence)
        write(Int64(notice.nonce))
        write(notice.userID)
        write(notice.at)
        let columns = Notice.Columns(notice.content)
        write(columns.kind)
        write(columns.grant)
        write(columns.from)
        write(columns.to)
        write(columns.reason)
        write(columns.lost)
        write(columns.granted)
        write(columns.session)
        write(notice.pendingSince)
        write(Int64(notice.attempts))
        write(archived.nextTryAt)
        write(archived.acceptedAt)
        write(archived.givenUpAt)
    }

    // MARK: Fields

    mutating func write(_ value: [UInt8]?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        add(length: value.count)
        bytes += value
    }

    mutating func write(_ value: String?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        add(length: value.utf8.count)
        bytes += value.utf8
    }

    mutating func write(_ value: Int64?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        for shift in stride(from: Int64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    mutating func write(_ value: Bool?) { write(value.map { $0 ? 1 : 0 as Int64 }) }

    private mutating func add(length: Int) { write(Int64(length)) }
}
