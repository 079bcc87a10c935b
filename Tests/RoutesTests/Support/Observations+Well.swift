import Base
import Status

extension Observations {
    /// Observations without a concern.
    static let well = Observations(at: Timestamp(milliseconds: 0))
}
