/// The verdict on an answer to a refresh, with the other data of the answer.
package struct ParsedRefreshResponse: Sendable {
    package var verdict: RefreshVerdict
    package var status: Int?
    /// The delay that the server asks for.
    package var retryAfter: Duration?
    /// Google's error text, shortened; it never contains the token that was sent.
    package var text: String?

    package init(verdict: RefreshVerdict, status: Int? = nil, retryAfter: Duration? = nil, text: String? = nil) {
        self.verdict = verdict
        self.status = status
        self.retryAfter = retryAfter
        self.text = text
    }
}
