/// The reason why Google did not answer a question about an account, or for its keys.
package enum LookupError: Error, Hashable, Sendable {
    /// The token is invalid or has expired.
    case refused
    /// Google could not be reached, or its answer could not be read. A retry might help.
    case unavailable(code: String)

    /// The answer lacks what it must have.
    static let flawed = LookupError.unavailable(code: "flawed_answer")
}
