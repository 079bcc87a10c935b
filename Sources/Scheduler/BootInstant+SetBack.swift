import Clocks

extension BootInstant {
    /// By how much the readings of one clock in several processes differ at most.
    private static let tolerance: Duration = .seconds(10)

    /// Whether an instant that was at most `span` ahead when it was stored is further ahead now.
    ///
    /// Then the clock has been set back since, as the clock of a database may be, and the instant is as good as over: it would
    /// hold for as long as the step was.
    func isBeyond(_ span: Duration, after now: BootInstant) -> Bool { self - now > span + Self.tolerance }
}
