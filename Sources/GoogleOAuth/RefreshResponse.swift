package import HTTPClient

/// The response to a refresh, or the failure to get one.
///
/// Parsing takes time, so the thread that receives responses does not do it.
package enum RefreshResponse: Sendable {
    case unread(Result<HTTPResponse, HTTPError>)
    /// It was read before: the account of a first response is compared before that counts.
    case read(ParsedRefreshResponse)
}
