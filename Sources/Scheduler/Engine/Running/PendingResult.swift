import Crypto

/// A refresh with its answer, which is not read yet.
struct PendingResult: Sendable {
    let refresh: InFlightRefresh
    /// Reads the answer and seals its tokens; the committer calls it, so that network threads are not held up.
    ///
    /// It can be called again after a failure: the answer is kept until it is sealed, since a rotated token in it has
    /// no other copy.
    let report: @Sendable () throws(SealError) -> RefreshDispatcher.Report

    init(_ refresh: InFlightRefresh, report: @escaping @Sendable () throws(SealError) -> RefreshDispatcher.Report) {
        self.refresh = refresh
        self.report = report
    }

    init(_ refresh: InFlightRefresh, with report: RefreshDispatcher.Report) {
        self.init(refresh) { report }
    }
}
