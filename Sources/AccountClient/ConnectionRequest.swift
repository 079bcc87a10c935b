/// The body of a request for a connection: the tokens, and the connection that they are for.
struct ConnectionRequest: Encodable, Sendable {
    private enum CodingKeys: String, CodingKey {
        case connection
        case onSwitch = "on_switch"
    }

    private let tokens: GoogleTokens
    /// ``AccountClient/Connection/wordForNew``, an id, or nil for the default connection.
    private let connection: String?
    /// Nil for what the backend does without it.
    private let onSwitch: String?

    init(
        _ tokens: GoogleTokens,
        for target: AccountClient.ConnectionTarget,
        onSwitch: AccountClient.SwitchPolicy
    ) throws(AccountError) {
        self.tokens = tokens
        switch target {
        case .default: connection = nil
        case .new: connection = AccountClient.Connection.wordForNew
        case .id(let id): connection = try AccountClient.Connection.checked(id)
        }
        self.onSwitch = onSwitch == .allow ? nil : onSwitch.rawValue
    }

    func encode(to encoder: any Encoder) throws {
        try tokens.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(connection, forKey: .connection)
        try container.encodeIfPresent(onSwitch, forKey: .onSwitch)
    }
}
