package import Storage

/// The ids of a grant that does not exist yet.
package struct NewConnection: Sendable {
    package let id: GrantID
    let userID: String
    let connection: ConnectionID

    package init(id: GrantID, userID: String, connection: ConnectionID) {
        self.id = id
        self.userID = userID
        self.connection = connection
    }
}
