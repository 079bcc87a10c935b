/// One try at refreshing one grant; ``write(into:)`` says what the fields mean.
package struct RefreshEvent: Sendable {
    static let name = "refresh"
    /// The maximum length of Google's text, in bytes.
    private static let maximumAnswer = 256

    package var grant: String
    package var outcome: RefreshOutcome
    package var verdict: String
    package var reason: String
    var attempt: Int
    /// The time from the grant's due time to this try; a negative value is shown as zero.
    var lateness: Duration
    var rotated: Bool
    var forced: Bool
    var lostScopes: [String]
    var latency: Duration?
    var status: Int?
    /// Google's text about an error.
    ///
    /// It never holds a token, because the reader of the answer omits the body of a successful one.
    var answer: String?

    package init(
        grant: String,
        outcome: RefreshOutcome,
        verdict: String,
        reason: String,
        attempt: Int,
        lateness: Duration,
        rotated: Bool = false,
        forced: Bool = false,
        lostScopes: [String] = [],
        latency: Duration? = nil,
        status: Int? = nil,
        answer: String? = nil
    ) {
        self.grant = grant
        self.outcome = outcome
        self.verdict = verdict
        self.reason = reason
        self.attempt = attempt
        self.lateness = lateness
        self.rotated = rotated
        self.forced = forced
        self.lostScopes = lostScopes
        self.latency = latency
        self.status = status
        self.answer = answer
    }

    var event: MetricsEvent { MetricsEvent(Self.name) { write(into: &$0) } }

    func write(into line: inout MetricsLine) {
        line.text("grant", grant, "the grant's id, 16 hexadecimal digits")
        line.text(
            "outcome",
            outcome.rawValue,
            """
            the outcome for the grant: `refreshed`, `retrying`, `held` (waits for confirmation), `suspended`, \
            `reauth_required`, `disconnected`, `unchanged` (the fault is not the grant's, which stays as it is), `void` (a late \
            answer to a refresh token that is no longer the stored one), `lost_lease` (another claim had replaced this one \
            when the answer came: another worker tries the grant)
            """
        )
        line.text(
            "verdict",
            verdict,
            """
            the verdict as a code: `granted`, the code of Google's error, as in `invalid_grant`, or the kind of fault, \
            as in `http_503` or `timeout`
            """
        )
        line.text(
            "reason",
            reason,
            """
            the reason for the grant's state after the try, as in `grants show`; empty where there is none. \
            `answer_lost` is an `invalid_grant` after a request whose answer was never stored, because the worker that sent it \
            died: a rotated token may have been lost with it
            """
        )
        line.number("attempt", attempt, "1 for the first try since the last success, and so on")
        line.milliseconds(
            "lateness_ms",
            max(.zero, lateness),
            "milliseconds from the grant's due time to this try; never below 0"
        )
        line.flag("rotated", rotated, "`true` if the answer contained another refresh token")
        line.flag("forced", forced, "`true` if a caller asked for this refresh before it was due")
        line.text(
            "lost_scopes",
            ifAny: lostScopes.isEmpty ? nil : lostScopes.joined(separator: " "),
            maximum: MetricsEvent.maximumScopes,
            """
            the scopes, separated by spaces, that the grant had before and the answer no longer grants; only if there \
            are any
            """
        )
        line.milliseconds(
            "latency_ms",
            ifAny: latency,
            "milliseconds from the request to the end of its answer; only if one was sent"
        )
        line.number("status", ifAny: status, "the HTTP status; only if there was an answer")
        line.text(
            "answer",
            ifAny: answer,
            maximum: Self.maximumAnswer,
            "Google's text about an error: at most its first 256 bytes, escaped"
        )
    }
}

/// The outcome of one try to refresh a grant.
package enum RefreshOutcome: String, CaseIterable, Sendable {
    /// A new access token is stored.
    case refreshed
    /// The try failed for a temporary reason; another one follows.
    case retrying
    /// Google refused the grant, and the refusal waits for confirmation.
    case held
    /// A policy or an administrator blocks the grant.
    case suspended
    /// Only the user can repair the grant, by signing in again.
    case reauthRequired = "reauth_required"
    /// The grant is dead.
    case disconnected
    /// The client is at fault; the grant does not change.
    case unchanged
    /// The answer came for a refresh token that is not the stored one any more, and was not used.
    case void
    /// Another claim had replaced the one of this answer, which was not a success: another worker tries the grant.
    case lostLease = "lost_lease"
}
