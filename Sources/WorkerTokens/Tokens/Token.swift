#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension WorkerTokens {
    /// A Google access token, which is never printed.
    public struct Token: Hashable, Sendable {
        /// The token itself, for the header `Authorization: Bearer …`.
        public let value: String
        /// When it expires, by the worker's clock.
        public let expiresAt: Date
        /// The scopes that the user has granted. The token has all of them.
        public let grantedScopes: [String]
        /// The code of the problem while refreshes fail, or nil. The token works until it expires.
        public let warning: String?
        /// When it expires, by the clock of this process.
        let deadline: Double
    }
}

extension WorkerTokens.Token: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The type's name, without the token.
    public var description: String { "Token" }
    /// The type's name, without the token.
    public var debugDescription: String { description }
    /// An empty mirror, so that `dump` does not print the token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
