/// A refresh whose result is committed, or never will be.
struct FinishedRefresh: Sendable {
    let refresh: InFlightRefresh
    /// The report; `nil` if the answer could not be sealed and so was not read.
    let report: RefreshDispatcher.Report?
    /// The committed result; `nil` if no request was sent, or if the worker stops while the store fails.
    let committed: CommittedResult?

    /// `true` if no request was sent, so that the grant can be tried again at once.
    var isNotSent: Bool { report?.result.answer.isNotSent ?? false }
}
