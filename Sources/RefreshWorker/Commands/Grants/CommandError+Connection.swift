import Base
import Scheduler
import Storage

extension CommandError {
    /// The failure to find one grant of a user, with the connections that there are.
    init(noGrantOf user: String, connection: ConnectionID, among grants: [Grant]) {
        guard !grants.isEmpty else {
            self.init(VendingError.unknownGrant, ofUser: user)
            return
        }
        let list = grants.map(\.connection.description).joined(separator: ", ")
        self.init(
            .unknownUser,
            "user \(DisplayedText(user)) has no connection \(connection); there are: \(list)"
        )
    }
}
