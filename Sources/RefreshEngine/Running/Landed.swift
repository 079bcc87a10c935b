/// A flight whose result is stored, or will not be.
struct Landed: Sendable {
    let flight: Flight
    /// `nil` when what was answered could not be sealed, and so not be read.
    let report: Courier.Report?
    /// `nil` when nothing was asked after all, and when the worker stops while the store refuses.
    let settled: Settled?
    /// The fate of an answer with tokens that is not stored.
    var unstored: Unstored?

    /// Whether nothing was sent, so that the grant can be called again at once.
    var isNotSent: Bool { report?.finding.answer.isNotSent ?? false }
}

/// Where an answer with tokens is that the store did not take.
enum Unstored: Sendable {
    /// In the spill file.
    case spilled
    case lost
}
