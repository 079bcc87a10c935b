import Base

extension BootInstant {
    /// The largest difference between the readings of one clock in several processes.
    private static let tolerance: Duration = .seconds(10)

    /// `true` if an instant that was at most `span` ahead when it was stored is further ahead now.
    ///
    /// Then the clock has been set back since, as a database server's clock may be, and the instant is treated as past:
    /// otherwise it would hold for as long as the step was.
    func isBeyond(_ span: Duration, after now: BootInstant) -> Bool { self - now > span + Self.tolerance }
}
