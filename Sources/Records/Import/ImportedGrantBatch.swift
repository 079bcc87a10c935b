import Base
import Storage

/// The prepared grants of one transaction of an import, in the order of the input.
///
/// It reads what is stored about all of their users at once, decides about one after the other, and adds the new grants
/// together. A grant that an earlier item has added or replaced counts as stored.
struct ImportedGrantBatch: Sendable {
    enum Content: Sendable {
        case new(NewGrant)
        case replacement(GrantReplacement)
        case nothing(ImportedGrantWriter.Outcome)
    }

    /// A grant from outside, and what is to be stored of it.
    struct Item: Sendable {
        let imported: ImportedGrant
        let content: Content
    }

    enum Decision: Sendable {
        case done(ImportedGrantWriter.Outcome)
        /// The stored grant differs from the expected one.
        ///
        /// Prepare again for this one.
        case changed(Grant?)
    }

    let items: [Item]
    let existing: ImportedGrantWriter.Existing
    let recordsDates: Bool
    /// `false` for a dry run.
    let writes: Bool
    let now: Timestamp

    func store(in transaction: any StoreTransaction) throws -> [Decision] {
        var standings = try transaction.standings(ofUsers: items.map(\.imported.userID))
        var additions: [Addition] = []
        let decisions = try items.map { (item) throws -> Decision in
            let imported = item.imported
            let standing = standings[imported.userID]
            if standing.isDeleted { return .done(.refused) }
            if let other = holder(ofAccountIn: imported, among: standing.grants) {
                return .done(.accountConnected(other.connection))
            }
            switch (item.content, standing.grant(of: imported.connection)) {
            case (.nothing(let outcome), _):
                return .done(outcome)
            case (.new(let new), nil):
                // Only the default connection can have been ended before it was here.
                let disconnectedAt = imported.connection.isDefault ? standing.disconnectedAt : nil
                if isOvertaken(imported, by: disconnectedAt) { return .done(.keptEnded) }
                guard writes else { return .done(.stored) }
                additions.append(Addition(new: new, obtainedAt: imported.obtainedAt))
                standings[imported.userID].set(new.grant)
                return .done(.stored)
            case (.new, let stored?):
                return existing == .keep ? .done(.kept) : .changed(stored)
            case (.replacement(let replacement), var grant?):
                // The grant can be one of them.
                try add(&additions, in: transaction)
                if let kept = try Self.outcome(ofFormerTokenIn: replacement.reconnection, for: grant, transaction) {
                    return .done(kept)
                }
                guard replacement.reconnection.isBased(on: grant) else { return .changed(grant) }
                let events = replacement.apply(to: &grant, at: now)
                guard writes else { return .done(.replaced) }
                try transaction.update(grant)
                for event in events { try transaction.record(event) }
                try recordDate(imported.obtainedAt, of: grant, in: transaction)
                standings[imported.userID].set(grant)
                return .done(.replaced)
            case (.replacement, nil):
                return .changed(nil)
            }
        }
        try add(&additions, in: transaction)
        return decisions
    }

    /// Returns the user's other connection that has the account of the record: two of one user never share one.
    private func holder(ofAccountIn imported: ImportedGrant, among grants: [Grant]) -> Grant? {
        if imported.recordedState?.reason == .accountMoved { return nil }
        return grants.first { $0.connection != imported.connection && $0.isConnection(of: imported.owner) }
    }

    /// A grant that is to be added, and the date of its tokens.
    private struct Addition {
        let new: NewGrant
        let obtainedAt: Timestamp?
    }

    private func add(_ additions: inout [Addition], in transaction: any StoreTransaction) throws {
        try transaction.insert(additions.map(\.new))
        for addition in additions { try recordDate(addition.obtainedAt, of: addition.new.grant, in: transaction) }
        additions = []
    }

    private func recordDate(_ date: Timestamp?, of grant: Grant, in transaction: any StoreTransaction) throws {
        guard recordsDates, let date else { return }
        try transaction.recordDate(date, ofTokensImportedFor: grant.id, at: now)
    }

    /// `true` if a user without a grant has disconnected here since the input was obtained.
    private func isOvertaken(_ imported: ImportedGrant, by disconnectedAt: Timestamp?) -> Bool {
        // What names one user, as a backend's own request does, is newer than any disconnect.
        guard existing != .replace, let disconnectedAt else { return false }
        guard let obtainedAt = imported.obtainedAt else { return true }
        return obtainedAt <= disconnectedAt
    }

    /// Returns the outcome of a record with a refresh token that the grant had before, or `nil` for any other.
    ///
    /// A client repeats a request whose answer was lost. Meanwhile a refresh can have rotated the token.
    private static func outcome(
        ofFormerTokenIn reconnection: Reconnection,
        for grant: Grant,
        _ transaction: any StoreTransaction
    ) throws -> ImportedGrantWriter.Outcome? {
        guard reconnection.replacesRefreshToken else { return nil }
        let token = reconnection.incoming.refreshToken
        if try transaction.hasLeft(token, of: grant) { return .keptEnded }
        guard try transaction.hasSpent(token, of: grant) else { return nil }
        if grant.wasEndedByUser { return .keptEnded }
        // A grant that has ended loses nothing by another try.
        return grant.state.endsRefreshes ? nil : .kept
    }
}
