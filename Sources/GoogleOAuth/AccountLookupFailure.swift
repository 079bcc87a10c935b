/// The reason why a request about an account failed.
package enum AccountLookupFailure: Error, Hashable, Sendable {
    /// The token is invalid or has expired.
    case refused
    /// Google could not be reached, or its answer could not be read; a retry may help.
    case unavailable(code: String)
}
