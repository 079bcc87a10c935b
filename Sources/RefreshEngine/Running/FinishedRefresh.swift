/// A flight whose result is committed, or never will be.
struct Landed: Sendable {
    let flight: Flight
    /// The report; `nil` if the answer could not be sealed and so was not read.
    let report: Courier.Report?
    /// The committed result; `nil` if no request was sent, or if the worker stops while the store fails.
    let settled: Settled?
    /// The fate of an answer with tokens that is not stored.
    var unstored: Unstored?

    /// `true` if no request was sent, so that the grant can be tried again at once.
    var isNotSent: Bool { report?.finding.answer.isNotSent ?? false }
}

/// The place of an answer with tokens that the store did not take.
enum Unstored: Sendable {
    /// In the spill file.
    case spilled
    case lost
}
