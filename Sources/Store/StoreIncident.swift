/// An event in the life of a database that a person should look at.
package struct StoreIncident: Hashable, Sendable {
    package enum Kind: Sendable {
        /// A standby was promoted: with asynchronous replication the last commits before that are lost.
        case failedOver
        /// The database lies in another cluster than when it was used last.
        case clusterReplaced
        /// The tables that a running worker used are gone.
        case tablesLost
    }

    package var kind: Kind
    /// The sentence that the alarm shows.
    package var text: String

    package init(kind: Kind, text: String) {
        self.kind = kind
        self.text = text
    }
}
