/// Thrown by a call that ``WorkerTokens/withToken(for:connection:scopes:minimumLife:call:)`` makes, if Google answered
/// it with 401.
public struct RefusedTokenError: Error, Hashable, Sendable {
    /// Creates the error.
    public init() {}
}
