extension AccountClient {
    /// The connection that new tokens are for.
    public enum ConnectionTarget: Hashable, Sendable {
        /// The connection with the id ``Connection/defaultID``. Unlike `.id`, it can switch to another account.
        case `default`
        /// One more account. If it is connected already, the tokens go to its connection.
        case new
        /// The connection with this id. It never switches to another account.
        case id(String)
    }
}
