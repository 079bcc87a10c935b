package import Base

/// The log of the worker's actions for programs: one JSON object per line.
package struct MetricsLog: Sendable {
    private let sink: any LineSink
    private let worker: String
    private let time: any TimeSource

    /// Makes a log.
    ///
    /// `worker` is the worker's name in its lines and leases.
    package init(sink: any LineSink, worker: String, time: any TimeSource) {
        self.sink = sink
        self.worker = worker
        self.time = time
    }

    /// Writes an event's line without making the caller wait.
    ///
    /// Returns `false` if the line may be lost, for actions that must not happen without a record.
    @discardableResult
    package func record(_ event: MetricsEvent) -> Bool {
        sink.write(event.line(at: time.now, worker: worker))
    }

    /// Writes the lines of refreshes that ended together, which begin with the same fields.
    package func record(_ refreshes: [RefreshEvent]) {
        let beginning = MetricsLine(event: RefreshEvent.name, at: time.now, worker: worker)
        // By index, here and in the counters: an event with its texts is costly to copy.
        for index in refreshes.indices {
            var line = MetricsLine(json: JSONLine(continuing: beginning.json))
            refreshes[index].write(into: &line)
            sink.write(line.json)
        }
    }

    /// The number of lines lost since the start, for the next summary.
    package var droppedLines: Int { sink.droppedLines }
    /// `true` while lines cannot be written.
    package var isFailing: Bool { sink.isFailing }
}

/// An event that the metrics log reports in one line.
///
/// A function of this type makes each event, and names each of its fields once, with its meaning. Lines, the schema
/// and the tables of docs/metrics-log.md follow from it:
///
///     static func stopped(uptime: Duration) -> MetricsEvent {
///         MetricsEvent("stopped") { $0.milliseconds("uptime_ms", uptime, "milliseconds since it started") }
///     }
package struct MetricsEvent: Sendable {
    /// The value of the line's `event` field.
    let name: String
    private let write: @Sendable (inout MetricsLine) -> Void

    init(_ name: String, _ write: @escaping @Sendable (inout MetricsLine) -> Void) {
        self.name = name
        self.write = write
    }

    /// Returns the complete line.
    func line(at instant: Timestamp, worker: String) -> JSONLine {
        var line = MetricsLine(event: name, at: instant, worker: worker)
        write(&line)
        return line.json
    }

    /// Returns the line with its own fields first, as scripts expect the result of a pass on standard output.
    package func resultLine(at instant: Timestamp, worker: String) -> JSONLine {
        var line = MetricsLine()
        line.json.field("event", name)
        write(&line)
        line.json.field("time", instant.iso8601)
        line.text("worker", worker, "")
        return line.json
    }

    /// The fields after those of every line, as docs/metrics-log.md describes them.
    var fields: [MetricsField] {
        var line = MetricsLine()
        line.fields = []
        write(&line)
        return line.fields ?? []
    }
}

/// A field of an event in the metrics log, as docs/metrics-log.md describes it.
struct MetricsField: Hashable, Sendable {
    enum Kind: String, Sendable {
        case string
        /// A whole number.
        case integer
        /// A number that may have a fraction.
        case number
        case boolean
    }

    let name: String
    let kind: Kind
    /// `false` if the field is omitted without a value.
    let isAlwaysGiven: Bool
    let meaning: String

    /// The fields that every line has.
    static let common: [MetricsField] = {
        var line = MetricsLine(json: JSONLine(), fields: [])
        line.begin(event: "", at: Timestamp(milliseconds: 0), worker: "")
        return line.fields ?? []
    }()
}

/// A line of the metrics log while its fields are written.
struct MetricsLine {
    /// The maximum length of a code, an id or a name, in bytes.
    static let maximumName = 128

    var json = JSONLine()
    /// The fields so far, if they and not the line are wanted.
    var fields: [MetricsField]?

    mutating func text(
        _ name: String,
        _ value: String,
        maximum: Int = maximumName,
        _ meaning: @autoclosure () -> String
    ) {
        note(name, .string, true, meaning)
        json.text(name, value, limit: maximum)
    }

    mutating func text(
        _ name: String,
        ifAny value: String?,
        maximum: Int = maximumName,
        _ meaning: @autoclosure () -> String
    ) {
        note(name, .string, false, meaning)
        if let value { json.text(name, value, limit: maximum) }
    }

    mutating func number(_ name: String, _ value: Int, _ meaning: @autoclosure () -> String) {
        note(name, .integer, true, meaning)
        json.field(name, value)
    }

    mutating func number(_ name: String, ifAny value: Int?, _ meaning: @autoclosure () -> String) {
        note(name, .integer, false, meaning)
        if let value { json.field(name, value) }
    }

    mutating func fraction(_ name: String, _ value: Double, _ meaning: @autoclosure () -> String) {
        note(name, .number, true, meaning)
        json.field(name, value)
    }

    mutating func flag(_ name: String, _ value: Bool, _ meaning: @autoclosure () -> String) {
        note(name, .boolean, true, meaning)
        json.field(name, value)
    }

    mutating func milliseconds(_ name: String, _ value: Duration, _ meaning: @autoclosure () -> String) {
        note(name, .integer, true, meaning)
        json.milliseconds(name, value)
    }

    mutating func milliseconds(_ name: String, ifAny value: Duration?, _ meaning: @autoclosure () -> String) {
        note(name, .integer, false, meaning)
        if let value { json.milliseconds(name, value) }
    }

    private mutating func note(
        _ name: String,
        _ kind: MetricsField.Kind,
        _ isAlwaysGiven: Bool,
        _ meaning: () -> String
    ) {
        guard fields != nil else { return }
        fields?.append(MetricsField(name: name, kind: kind, isAlwaysGiven: isAlwaysGiven, meaning: meaning()))
    }
}

extension MetricsLine {
    init(event: String, at instant: Timestamp, worker: String) {
        begin(event: event, at: instant, worker: worker)
    }

    /// Writes the fields of every line.
    mutating func begin(event: String, at instant: Timestamp, worker: String) {
        text("time", instant.iso8601, "the time of the line: UTC with milliseconds, as in `2026-11-21T03:17:39.123Z`")
        text("event", event, "the name of one of the events below")
        text("worker", worker, "the name of the worker that wrote the line")
    }
}

/// One try at refreshing one grant.
///
/// ``write(into:)`` says what the fields mean.
package struct RefreshEvent: Sendable {
    static let name = "refresh"
    /// The maximum length of Google's text, in bytes.
    private static let maximumAnswer = 256

    package var grant: String
    package var outcome: RefreshOutcome
    package var verdict: String
    package var reason: String
    var attempt: Int
    /// The time from the grant's due time to this try.
    ///
    /// A negative value is shown as zero.
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
    /// The try failed for a temporary reason.
    ///
    /// Another one follows.
    case retrying
    /// Google refused the grant, and the refusal waits for confirmation.
    case held
    /// A policy or an administrator blocks the grant.
    case suspended
    /// Only the user can repair the grant, by signing in again.
    case reauthRequired = "reauth_required"
    /// The grant is dead.
    case disconnected
    /// The client is at fault.
    ///
    /// The grant does not change.
    case unchanged
    /// The answer came for a refresh token that is not the stored one any more, and was not used.
    case void
    /// Another claim had replaced the one of this answer, which was not a success: another worker tries the grant.
    case lostLease = "lost_lease"
}
