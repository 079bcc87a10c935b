package import Base
package import Storage

// Most tests are about users with one Google account.

extension Store {
    package func grant(ofUser userID: String) async throws -> Grant? {
        try await grant(ofUser: userID, connection: .default)
    }
}

extension StoreTransaction {
    package func grant(ofUser userID: String) throws -> Grant? { try grant(ofUser: userID, connection: .default) }
}

extension SynchronousGrantReader {
    package func grant(ofUser userID: String) throws -> Grant? { try grant(ofUser: userID, connection: .default) }
}

extension Notice.Subject {
    /// A grant of the default connection, without labels.
    package init(_ grant: GrantID) { self.init(grant: grant, connection: .default, labels: .none) }
}

extension GrantDisconnection {
    package static func end(
        grantOfUser user: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> GrantDisconnection? {
        try end(grantOfUser: user, connection: .default, in: transaction, at: now)
    }
}
