import Scheduler
import Telemetry

extension CommandContext {
    /// Reports results that could not be stored.
    func report(_ unstored: UnstoredResults, in spill: ResultSpillFile) {
        if unstored.spilled > 0, let path = spill.path {
            diagnostics.error(
                "results could not be stored and were kept in a file: the next start stores them, or results recover FILE",
                ["results": "\(unstored.spilled)", "file": path]
            )
        }
        if unstored.lost > 0 {
            diagnostics.error(
                "results could not be stored and are lost: where refresh tokens rotate, these users must sign in again",
                ["lost": "\(unstored.lost)"]
            )
        }
    }
}
