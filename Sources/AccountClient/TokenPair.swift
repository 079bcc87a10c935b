/// The app's two tokens, which are never printed.
struct TokenPair: Equatable, Sendable {
    /// Nil if only the refresh token had been stored when the process ended.
    ///
    /// The first call then refreshes.
    let accessToken: String?
    let refreshToken: String
}

extension TokenPair: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "TokenPair" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
