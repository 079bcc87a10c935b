import Crypto
package import Storage
import Telemetry

/// The outcome of one refresh after its commit.
///
/// It is shared on its way from the commit to the log and the callers, because copies of decisions are costly.
package final class CommittedResult: Sendable {
    package let result: RefreshResult
    package let decision: RefreshDecision
    /// The events of other grants that were recalled because of this result.
    package let recalled: [GrantEvent]
    /// `true` if it was stored without its client's health.
    package let isPlain: Bool

    init(
        result: RefreshResult,
        decision: consuming RefreshDecision,
        recalled: [GrantEvent] = [],
        isPlain: Bool = false
    ) {
        self.result = result
        self.decision = decision
        self.recalled = recalled
        self.isPlain = isPlain
    }

    /// The grant as stored; `nil` if it has been deleted since the claim.
    package var grant: Grant? { decision.grant }
    /// The client's health as this result left it; `nil` if it was not read.
    ///
    /// The last result of a client in a batch has the health that was stored.
    package var health: ClientHealth? { isPlain ? nil : decision.health }
}

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

/// Answers with tokens that a stopping worker could not store.
package struct UnstoredResults: Sendable, Hashable {
    /// The number of results in the spill file.
    package var spilled: Int
    /// The number of results that were kept nowhere: if the server rotates refresh tokens, these grants are lost.
    package var lost: Int

    package init(spilled: Int = 0, lost: Int = 0) {
        self.spilled = spilled
        self.lost = lost
    }
}
