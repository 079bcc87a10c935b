/// One try to refresh a grant, as the counters need it.
///
/// `lateness` is the time from the grant's due time to this try, where a negative one counts as zero. `latency` is the
/// time from the request to the end of its response, or `nil` without one.
package typealias CountedRefresh = (outcome: RefreshOutcome, lateness: Duration, latency: Duration?)

extension [CountedRefresh] {
    /// The outcomes with their numbers.
    ///
    /// An outcome that comes again after another one is listed again.
    ///
    /// Most refreshes of a batch have the same outcome, so they are counted together.
    var outcomes: [(RefreshOutcome, Int)] {
        var runs: [(RefreshOutcome, Int)] = []
        for index in indices {
            let outcome = self[index].outcome
            if let last = runs.last, last.0 == outcome {
                runs[runs.count - 1].1 += 1
            } else {
                runs.append((outcome, 1))
            }
        }
        return runs
    }
}
