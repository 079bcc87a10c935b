/// An event of a database that a person must check; the worker logs it as an alarm.
package struct StoreIncident: Hashable, Sendable {
    package enum Kind: Sendable {
        /// A standby was promoted: with asynchronous replication the last commits before that are lost.
        case failedOver
        /// The database is in another cluster than at its last use.
        case clusterReplaced
        /// The tables that a running worker used are missing.
        case tablesLost
        /// Rows are gone that this program did not remove.
        case rowsLost
    }

    package var kind: Kind
    /// The text of the alarm.
    package var text: String

    package init(kind: Kind, text: String) {
        self.kind = kind
        self.text = text
    }
}
