/// Whose token is asked for, and with which scopes.
///
/// Tokens are kept apart by the scopes that were asked for, although each carries all of the user's. Otherwise a service
/// could get a token for scopes that its entry in the services file does not allow, and the audit would not show them.
///
/// Two subjects are equal if their bytes are. Two ids can be equal as `String` and still name two users to the worker: é
/// in one character, or as e with an accent.
struct TokenSubject: Hashable {
    let user: String
    /// Nil for the connection `default`.
    let connection: String?
    let scopes: [String]
    private let bytes: [[UInt8]]

    init(user: String, connection: String?, scopes: [String]) {
        self.user = user
        self.connection = connection == "default" ? nil : connection
        self.scopes = Set(scopes).sorted()
        bytes = ([user, self.connection ?? ""] + self.scopes).map { Array($0.utf8) }
    }

    static func == (left: TokenSubject, right: TokenSubject) -> Bool { left.bytes == right.bytes }

    func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    func isOf(_ user: String) -> Bool { self.user.utf8.elementsEqual(user.utf8) }
}
