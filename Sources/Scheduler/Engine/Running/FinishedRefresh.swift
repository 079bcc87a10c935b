import Telemetry

/// A refresh whose result is committed, or never will be.
///
/// It is shared by the log and the callers that wait, because copies of grants are costly.
final class FinishedRefresh: Sendable {
    let refresh: InFlightRefresh
    /// The report; `nil` if the answer could not be sealed and so was not read.
    let report: RefreshDispatcher.Report?
    /// The committed result; `nil` if no request was sent, or if the worker stops while the store fails.
    let committed: CommittedResult?

    init(refresh: InFlightRefresh, report: RefreshDispatcher.Report?, committed: CommittedResult?) {
        self.refresh = refresh
        self.report = report
        self.committed = committed
    }

    /// `true` if no request was sent, so that the grant can be tried again at once.
    var isNotSent: Bool { report?.result.answer.isNotSent ?? false }

    /// The outcome of the committed result.
    var outcome: RefreshOutcome? { committed?.decision.outcome }
}
