import Storage

extension ConnectionID {
    /// What follows a user in a sentence about one of the user's grants: nothing if it is the default connection.
    var clause: String { isDefault ? "" : " (connection \(self))" }
}
