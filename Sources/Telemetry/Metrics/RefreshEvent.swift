package import Base

/// One try at refreshing one grant.
package struct RefreshEvent: MetricsEvent {
    package static let name = "refresh"

    package static let fields: [MetricsField] = [
        .always("grant", .string, "the grant's id, 16 hexadecimal digits"),
        .always(
            "outcome",
            .string,
            """
            the outcome for the grant: `refreshed`, `retrying`, `held` (waits for confirmation), `suspended`, \
            `reauth_required`, `disconnected`, `unchanged` (the fault is not the grant's, which stays as it is), `void` (a late \
            answer to a refresh token that is no longer the stored one), `lost_lease` (another claim had replaced this one \
            when the answer came: another worker tries the grant)
            """
        ),
        .always(
            "verdict",
            .string,
            """
            the verdict as a code: `granted`, the code of Google's error, as in `invalid_grant`, or the kind of fault, \
            as in `http_503` or `timeout`
            """
        ),
        .always(
            "reason",
            .string,
            """
            the reason for the grant's state after the try, as in `grants show`; empty where there is none. \
            `answer_lost` is an `invalid_grant` after a request whose answer was never stored, because the worker that sent it \
            died: a rotated token may have been lost with it
            """
        ),
        .always("attempt", .integer, "1 for the first try since the last success, and so on"),
        .always("lateness_ms", .integer, "milliseconds from the grant's due time to this try; never below 0"),
        .always("rotated", .boolean, "`true` if the answer contained another refresh token"),
        .always("forced", .boolean, "`true` if a caller asked for this refresh before it was due"),
        .sometimes(
            "lost_scopes",
            .string,
            "the scopes, separated by spaces, that the grant had before and the answer no longer grants; only if "
                + "there are any"
        ),
        .sometimes(
            "latency_ms",
            .integer,
            "milliseconds from the request to the end of its answer; only if one was sent"
        ),
        .sometimes("status", .integer, "the HTTP status; only if there was an answer"),
        .sometimes("answer", .string, "Google's text about an error: at most its first 256 bytes, escaped"),
    ]

    /// The grant's id, 16 hexadecimal digits.
    package var grant: String
    package var outcome: RefreshOutcome
    /// The verdict on the answer, as a code.
    package var verdict: String
    /// The reason for the state of the grant after the try, or an empty text.
    package var reason: String
    /// 1 for the first try since the last success.
    package var attempt: Int
    /// The time from the grant's due time to this try; a negative value is shown as zero.
    package var lateness: Duration
    /// `true` if the answer contained another refresh token.
    package var rotated: Bool
    /// `true` if a caller requested this refresh.
    package var forced: Bool
    /// The scopes that the grant had before and that the answer no longer grants.
    package var lostScopes: [String]
    /// The time from sending the request to the end of its answer, if it was sent.
    package var latency: Duration?
    /// The HTTP status, if there was an answer.
    package var status: Int?
    /// Google's text about an error.
    ///
    /// It never holds a token, because the reader of the answer omits the body of a successful one.
    package var answer: String?

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

    package func write(into line: inout JSONLine) {
        line.text("grant", grant, limit: TextLimit.name)
        line.field("outcome", outcome.rawValue)
        line.text("verdict", verdict, limit: TextLimit.name)
        line.text("reason", reason, limit: TextLimit.name)
        line.field("attempt", attempt)
        line.milliseconds("lateness_ms", max(.zero, lateness))
        line.field("rotated", rotated)
        line.field("forced", forced)
        if !lostScopes.isEmpty {
            line.text("lost_scopes", lostScopes.joined(separator: " "), limit: VendEvent.longestScopes)
        }
        if let latency { line.milliseconds("latency_ms", latency) }
        if let status { line.field("status", status) }
        if let answer { line.text("answer", answer, limit: TextLimit.answer) }
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
