import Base
import Scheduler

extension ClientStatus {
    /// What the endpoint answered instead of a token, a line for each kind.
    func failureSentences(at now: Timestamp) -> [String] {
        failures.map { failure in
            let last = "the last \((now - failure.lastAt).inTwoUnits) ago"
            return "  \(failure.name): \(failure.count) since \(failure.since.iso8601Seconds), \(last)"
        }
    }

    var sentence: String {
        let reason = breakerReason.map { " (\($0))" } ?? ""
        let probe = nextProbe.map { ", next probe in \($0.inTwoUnits)" } ?? ""
        let rate = (ceiling * 10).rounded() / 10
        let pace = pause.map { "paused for \($0.inTwoUnits)" } ?? "at most \(rate) requests a second"
        let wave = isWave ? ", in a wave of refusals" : ""
        let slowed = isSlowed ? ", slowed" : ""
        return "\(DisplayedText(id)): breaker \(breaker.name)\(reason)\(probe), \(pace)\(slowed)\(wave)"
    }
}
