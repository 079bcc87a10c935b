/// One try to refresh a grant, as the counters need it.
package struct CountedRefresh: Sendable {
    package var outcome: RefreshOutcome
    /// The time from the grant's due time to this try. A negative one counts as zero.
    package var lateness: Duration
    /// The time from the request to the end of its response, or `nil` without a response.
    package var latency: Duration?

    package init(outcome: RefreshOutcome, lateness: Duration, latency: Duration?) {
        self.outcome = outcome
        self.lateness = lateness
        self.latency = latency
    }
}

extension [CountedRefresh] {
    /// Neighbours with the same outcome.
    struct Run {
        let outcome: RefreshOutcome
        var count = 1
    }

    /// The outcomes with their numbers. Most refreshes of a batch have the same outcome, so they are counted together.
    /// An outcome that comes again after another one is listed again.
    var outcomes: [Run] {
        var runs: [Run] = []
        for index in indices {
            let outcome = self[index].outcome
            if runs.last?.outcome == outcome {
                runs[runs.count - 1].count += 1
            } else {
                runs.append(Run(outcome: outcome))
            }
        }
        return runs
    }
}
