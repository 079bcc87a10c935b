package import Base

/// One user of the backend: created by a sign-in, by a token of the backend's own, or by an import.
package struct User: Hashable, Sendable {
    /// The backend's name for the user.
    package let id: String
    package var createdAt: Timestamp
    package var email: String?
    package var emailIsVerified: Bool?
    package var name: String?
    package var picture: String?
    /// The account at Google that the user signs in with, which no two users share.
    package var googleUserID: String?
    package var lastLoginAt: Timestamp?
    package var isActive = true
    /// Makes this a tombstone, which keeps only the id: the id is refused until the tombstone is removed, after this
    /// time.
    package internal(set) var deletedUntil: Timestamp?
    /// The latest expiry of the backend's tokens that were accepted for the user, or `nil` if the shortest tombstone
    /// outlives them all.
    var tokensUntil: Timestamp?
    /// `true` if a sign-in here created the user, and no import has brought the user since: the backend might know the
    /// account by another id.
    package var isFromSignIn = false
}

extension User {
    package init(id: String, createdAt: Timestamp) {
        self.id = id
        self.createdAt = createdAt
    }

    /// `true` if only the id of the user is known, as after a grant was brought before the user.
    package var isPlaceholder: Bool { self == User(id: id, createdAt: createdAt) }

    /// `true` if the user was deleted: the id cannot be used until the tombstone is removed.
    package var isDeleted: Bool { deletedUntil != nil }
}

/// The changes of a user between the first sign-in and the deletion.
extension User {
    /// Takes over what Google says about the account at a sign-in, except for fields that it omits.
    package mutating func signIn(as account: Grant.Owner, picture: String?, at now: Timestamp) {
        if let address = account.email {
            email = address
            emailIsVerified = account.emailIsVerified
        }
        googleUserID = account.googleUserID ?? googleUserID
        name = account.name ?? name
        self.picture = picture ?? self.picture
        lastLoginAt = now
    }

    /// Takes over what the sign-ins of another user with the same account at Google have told.
    package mutating func join(_ other: User) {
        if email == nil || email == other.email {
            email = other.email
            emailIsVerified = other.emailIsVerified ?? emailIsVerified
        }
        name = name ?? other.name
        picture = picture ?? other.picture
        lastLoginAt = [lastLoginAt, other.lastLoginAt].compactMap(\.self).max()
    }

    /// Remembers a token of the backend that outlives the shortest tombstone. Without this, a device that still holds
    /// the token would bring a deleted user back. A token that a tombstone outlives anyway needs no write.
    package mutating func accept(tokenUntil end: Timestamp, at now: Timestamp) {
        guard end > now + AccountDeletion.shortestTombstone else { return }
        tokensUntil = max(tokensUntil ?? end, end)
    }

    /// Deletes what identifies the user to a reader. The id at Google stays, so that the next sign-in finds the same
    /// user. It, or a token of the backend, brings the rest again.
    mutating func forget() {
        email = nil
        emailIsVerified = nil
        name = nil
        picture = nil
    }

    /// Deletes everything about the user but the id, which is refused until `end`, or for as long as an accepted token
    /// names it.
    mutating func delete(until end: Timestamp) {
        forget()
        googleUserID = nil
        lastLoginAt = nil
        isFromSignIn = false
        isActive = false
        deletedUntil = max(end, tokensUntil ?? end)
        tokensUntil = nil
    }
}

/// The deletion of a user: ends the sessions and the grant, notifies the backend, and keeps only a tombstone.
package struct AccountDeletion: Hashable, Sendable {
    package let endedSessions: Int
    /// The ended grant, as stored until its revocation is done and the tombstone is removed.
    package let grant: Grant?
    /// `true` if a revocation would end another stored grant too, so Google is not notified.
    package let isShared: Bool

    /// The minimum time for which a deleted id is refused: PayPulse's own tokens live a day.
    static let shortestTombstone: Duration = .seconds(86_400)

    /// Deletes the user within the caller's transaction. Returns `nil` if the user does not exist, or was deleted
    /// before.
    package static func delete(user id: String, in transaction: any StoreTransaction, at now: Timestamp) throws
        -> AccountDeletion?
    {
        guard var user = try transaction.user(id), !user.isDeleted else { return nil }
        let endedSessions = try transaction.endSessions(ofUser: id)
        let ending = try transaction.grant(ofUser: id).map { grant in
            try GrantEnding.end(grant, reason: .userDeleted, in: transaction, at: now)
        }
        user.delete(until: now + shortestTombstone)
        try transaction.update(user)
        try transaction.notify(.userDeleted, ofUser: id, at: now)
        return AccountDeletion(endedSessions: endedSessions, grant: ending?.grant, isShared: ending?.isShared ?? false)
    }
}

/// The retention of ended grants: what makes the user identifiable is deleted some time after the end.
extension Store {
    private var pageSize: Int { 500 }
    /// Each grant takes three round trips to PostgreSQL, during which no other transaction can change a grant.
    private var transactionSize: Int { 25 }

    /// Forgets the grants that ended before `end`, with the addresses and names of their users, and calls `report` with
    /// each page of them as they were.
    ///
    /// A user who has a session, or has signed in since the end, still uses the app and is left out. `isDryRun` only
    /// reports.
    package func forgetGrants(
        endedBefore end: Timestamp,
        isDryRun: Bool = false,
        at now: Timestamp,
        report: ([Grant]) async throws -> Void = { _ in }
    ) async throws {
        for state in GrantState.allCases where state.endsRefreshes {
            try await changePages(after: GrantID?.none) { cursor in
                let page = try await grants(after: cursor, in: state, atMost: pageSize)
                let ids = page.filter { $0.isForgettable(endedBefore: end) }.map(\.id)
                var forgotten: [Grant] = []
                for first in stride(from: 0, to: ids.count, by: transactionSize) {
                    let part = Array(ids[first..<min(first + transactionSize, ids.count)])
                    forgotten += try await forget(part, endedBefore: end, isDryRun: isDryRun, at: now)
                }
                if !forgotten.isEmpty { try await report(forgotten) }
                let isLast = page.count < pageSize
                return (forgotten.count, isLast ? nil : page.last.map { Optional.some($0.id) })
            }
        }
    }

    private func forget(_ ids: [GrantID], endedBefore end: Timestamp, isDryRun: Bool, at now: Timestamp) async throws
        -> [Grant]
    {
        try await transact { transaction in
            try transaction.willRead(grants: ids, healthOf: [])
            return try ids.compactMap { id in
                guard let grant = try transaction.grant(id), grant.isForgettable(endedBefore: end) else { return nil }
                guard let user = try transaction.user(grant.userID) else { return nil }
                if let lastLoginAt = user.lastLoginAt, lastLoginAt >= end { return nil }
                if try transaction.hasSession(ofUser: user.id) { return nil }
                guard !isDryRun else { return grant }
                var (emptied, stranger) = (grant, user)
                let event = emptied.forget(at: now)
                stranger.forget()
                // An old export must not bring the account back.
                try transaction.rememberRefreshToken(of: grant, at: now)
                try transaction.update(emptied)
                try transaction.record(event)
                if stranger != user { try transaction.update(stranger) }
                return grant
            }
        }
    }
}

/// The name of one scope (https://www.rfc-editor.org/rfc/rfc6749#section-3.3).
package struct ScopeName: Hashable, Sendable {
    /// Two scopes that have a short name for requests, while Google's answers have the long one
    /// (https://developers.google.com/identity/protocols/oauth2/scopes#google-sign-in).
    private static let longNames = [
        "email": "https://www.googleapis.com/auth/userinfo.email",
        "profile": "https://www.googleapis.com/auth/userinfo.profile",
    ]

    /// The name as the caller wrote it.
    package let text: String

    /// The name by which scopes are compared.
    package var canonical: String { Self.longNames[text] ?? text }

    package init?(_ text: some StringProtocol) {
        let isScope = text.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
        guard isScope, !text.isEmpty else { return nil }
        self.text = String(text)
    }

    /// Returns the requested scopes that are not in the granted ones, which are separated by spaces.
    ///
    /// An empty list is not known yet, and nothing counts as missing: Google grants no empty one, and its first answer
    /// to a refresh names the scopes.
    package static func missing(_ requested: [ScopeName], in granted: String) -> [String] {
        guard !requested.isEmpty, !granted.isEmpty else { return [] }
        let names = Set(granted.split(separator: " ").map { longNames[String($0)] ?? String($0) })
        return requested.filter { !names.contains($0.canonical) }.map(\.text)
    }

    /// Returns the scopes of `former` that are not among those granted now. Both lists are separated by spaces.
    package static func lost(from former: String, to granted: String) -> [String] {
        guard former != granted else { return [] }
        return missing(former.split(separator: " ").compactMap { ScopeName($0) }, in: granted)
    }
}
