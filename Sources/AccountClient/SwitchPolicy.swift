extension AccountClient {
    /// Whether the default connection can switch to another Google account.
    public enum SwitchPolicy: String, Sendable {
        /// The account of the new tokens takes the place of the former one.
        case allow = "switch"
        /// Tokens of another account are refused with ``AccountError/otherAccount(expected:found:)``.
        case refuse
    }
}
