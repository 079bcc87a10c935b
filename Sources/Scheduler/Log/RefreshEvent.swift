import Base
import Storage
import Telemetry

/// The event `refresh`: one try to refresh one grant.
struct RefreshEvent: Sendable {
    static let name = "refresh"
    /// The maximum length of Google's text, in bytes.
    static let maximumAnswer = 256

    var grant: GrantID
    var connection = ConnectionID.default
    var counted: CountedRefresh
    var verdict: String
    var reason: String
    var attempt: Int
    var rotated = false
    var forced = false
    var lostScopes: [String] = []
    var status: Int?
    /// Google's text about an error.
    ///
    /// It never holds a token, because the reader of the answer omits the body of a successful one.
    var answer: String?
    /// The number of plain successes that this one stands for, if others have no line.
    var standsFor: Int?

    /// `true` if the grant goes on as before, so that nobody misses the line.
    ///
    /// A rotated token, lost scopes, a retry and a refresh that a caller asked for are part of a grant's history.
    var isRoutine: Bool {
        counted.outcome == .refreshed && attempt == 1 && !rotated && !forced && lostScopes.isEmpty
    }

    func write(into line: inout MetricsLine) {
        line.id("grant", UInt64(bitPattern: grant.rawValue), "the grant")
        line.text(
            "outcome",
            counted.outcome.rawValue,
            """
            `refreshed`, `retrying`, `held` (waits for confirmation), `suspended`, `reauth_required`, `disconnected`, \
            `unchanged` (the fault is not the grant's), `void` (a late answer to a replaced refresh token), `lost_lease` \
            (another worker had claimed the grant before the answer came, and tries it)
            """
        )
        line.text(
            "verdict",
            verdict,
            """
            `granted`, the code of Google's error, as in `invalid_grant`, or the kind of fault, as in `http_503` or \
            `timeout`
            """
        )
        line.text(
            "reason",
            reason,
            """
            the reason for the state after the try, as in `grants show`. `answer_lost` is an `invalid_grant` after a \
            request whose answer was never stored, because its worker died: a rotated token might have been lost
            """
        )
        line.number("attempt", attempt, "1 for the first try since the last success")
        line.milliseconds("lateness_ms", max(.zero, counted.lateness), "from the due time to this try; never below 0")
        line.flag("rotated", rotated, "the answer contained another refresh token")
        line.flag("forced", forced, "a caller asked for it before it was due")
        line.text(
            "lost_scopes",
            ifAny: lostScopes.isEmpty ? nil : lostScopes.joined(separator: " "),
            maximum: MetricsLine.maximumScopes,
            "scopes that the grant had and the answer no longer grants"
        )
        line.milliseconds("latency_ms", ifAny: counted.latency, "from the request to the end of its answer")
        line.number("status", ifAny: status, "the answer's HTTP status")
        line.number("stands_for", ifAny: standsFor, "plain successes that this line stands for (`--log-sample`)")
        line.connection(connection)
        line.text("answer", ifAny: answer, maximum: Self.maximumAnswer, "Google's text about an error")
    }
}

extension RefreshEvent {
    init(of refresh: Refresh, result: RefreshResult, stored: StoredDecision, at now: Timestamp) {
        let reason = stored.decision.grant?.reason ?? .none
        self.init(
            grant: refresh.grant.id,
            connection: refresh.grant.connection,
            counted: CountedRefresh(
                outcome: stored.decision.outcome,
                lateness: refresh.grant.dueAt.map { now - $0 - (result.latency ?? .zero) } ?? .zero,
                latency: result.latency
            ),
            verdict: result.code,
            reason: reason.codeOrEmpty,
            attempt: refresh.grant.failures + 1,
            rotated: stored.decision.events.contains { $0.kind == .rotated },
            forced: refresh.isForced,
            lostScopes: stored.decision.lostScopes,
            status: result.status,
            answer: result.text
        )
    }
}

extension GrantReason {
    /// The code, or an empty text where there is no reason.
    var codeOrEmpty: String { self == .none ? "" : rawValue }
}
