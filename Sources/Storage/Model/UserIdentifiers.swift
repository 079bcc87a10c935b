import Base

/// The identifiers about a user that are kept among those of security events.
enum UserIdentifiers {
    /// Returns the prefix of what is kept of one kind, such as `joined-user`.
    ///
    /// A user id can contain any sign, also the colon that ends a prefix.
    static func prefix(_ kind: String, ofUser userID: String) -> String {
        "\(kind):\(Hexadecimal.encode(Array(userID.utf8))):"
    }
}
