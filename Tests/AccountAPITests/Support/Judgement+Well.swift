import Clocks
import Judgement

extension Judgement {
    /// A judgement without a concern.
    static let well = Judgement(Observations(at: Timestamp(milliseconds: 0)))
}
